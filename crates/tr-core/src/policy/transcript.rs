//! What the integrity layer reads of a tool cycle: the model's use of a tool, and its result.
use crate::{End, Ran};
use std::borrow::Cow;

/// What a transcript records of a call: the model's use of a tool, and the call's end. Apart from
/// the two policies, since only calls of a model belong to a transcript.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a transcript records of a `{Req}` that ends in a `{Res}`",
    label = "no `TranscriptPolicy<{Req}, {Res}>` here",
    note = "write `impl tr_core::TranscriptPolicy<{Req}, {Res}> for {Self}` beside your request type",
    note = "for a type of another crate give the layer a policy of your own: `.policy(MyPolicy)`"
)]
pub trait TranscriptPolicy<Req, Res> {
    /// Which tool cycle of which session the request is; `None` for a request that belongs to no
    /// session or that no model made.
    fn cycle<'r>(&self, req: &'r Req) -> Option<CycleRef<'r>>;

    /// What the model sees of the call's end, and whether the tool ran.
    fn answer<'r>(&self, end: End<'r, Res>) -> Answer<'r>;
}

/// A model's use of a tool, as a transcript records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleRef<'r> {
    /// The session.
    pub session: &'r str,
    /// The id that the model gave to the use.
    pub tool_use_id: &'r str,
    /// The tool, as the model names it.
    pub name: &'r str,
    /// The input, as JSON text.
    pub input: &'r str,
}

/// What a transcript records of a call's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'r> {
    /// What the model sees.
    pub content: Cow<'r, str>,
    /// Whether it is a failure.
    pub is_error: bool,
    /// Whether the tool ran.
    pub ran: Ran,
}
