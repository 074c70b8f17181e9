//! How another tool shows whether a call ran.
use crate::canonical::Pointer;
use std::time::Duration;

/// How another tool of the same server shows whether a call ran whose outcome is unknown: what to ask it, and what in its
/// answer is the call's effect.
///
/// Exactly one element of the array that agrees with the call's params, and is not older than the call, says that it ran.
/// Fields are added in minor versions.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OutcomeCheck {
    /// The tool to ask; it must only read.
    pub tool: Box<str>,
    /// Its arguments: names, and where in the call's params their values are.
    pub args: Vec<(Box<str>, Pointer)>,
    /// Where in the answer the array is: in `structuredContent`, else in its one text, read as JSON.
    pub found: Pointer,
    /// Members of an element, each by its name or as a JSON pointer, and where in the call's params the same value is.
    pub matches: Vec<(Box<str>, Pointer)>,
    /// Where in an element the time is when it came to be, as RFC 3339 with a zone, or in seconds or milliseconds since
    /// 1970. Without it `matches` must have a value that only this call has.
    pub not_before: Option<Pointer>,
    /// That long after the call, an answer without a match says that it did not run. Without it absence says nothing.
    pub absent_after: Option<Duration>,
}
