//! Errors between layers, and the failure information that each of them carries.
//!
//! A layer's error is a leaf type whose [`source`](std::error::Error::source) is a [`FailureInfo`],
//! whose source is the cause: leaf → failure info → cause. The outermost [`FailureInfo`] wins, so a
//! reader walks the chain once and need not know the crate that made the error.
use crate::{Classification, Ran, Replay, Verdict};
use std::{borrow::Cow, error::Error, fmt, iter, sync::Arc};

/// A type-erased error, as tower uses it between layers.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The machine-readable part of an error: code, verdict, and whether the tool ran. A link in the
/// chain of sources.
#[derive(Debug)]
pub struct FailureInfo {
    code: Cow<'static, str>,
    ran: Ran,
    verdict: Verdict,
    exhausted: bool,
    by_layer: bool,
    is_transparent: bool,
    cause: Option<Cause>,
    // Boxed, because errors are moved often and few have it.
    rare: Option<Box<RareFields>>,
}

/// The rare fields.
#[derive(Debug, Default)]
struct RareFields {
    earlier: Option<BoxError>,
    replay: Option<Replay>,
    owner: Option<Owner>,
}

/// Whether an error is the one that this information belongs to.
type Owner = fn(&(dyn Error + 'static)) -> bool;

/// The cause of an error.
#[derive(Debug)]
enum Cause {
    Owned(BoxError),
    Shared(Arc<dyn Error + Send + Sync>),
}

impl FailureInfo {
    /// Failure information without a cause.
    #[must_use]
    pub const fn new(code: &'static str, ran: Ran, verdict: Verdict) -> Self {
        Self {
            code: Cow::Borrowed(code),
            ran,
            verdict,
            exhausted: false,
            by_layer: false,
            is_transparent: false,
            cause: None,
            rare: None,
        }
    }

    /// Failure information from a classification.
    #[must_use]
    pub fn of(end: Classification<'_>) -> Self {
        let code = Cow::Owned(end.code.to_owned());
        Self { code, exhausted: end.exhausted, ..Self::new("", end.ran, end.verdict) }
    }

    crate::setters! {
        /// Sets the cause.
        fn because(cause: impl Into<BoxError>) { cause = Some(Cause::Owned(cause.into())) }

        /// Sets a cause that other errors share.
        #[inline]
        fn because_shared(cause: Arc<dyn Error + Send + Sync>) { cause = Some(Cause::Shared(cause)) }

        /// Adds an earlier failure of the same call, which is not in the chain of sources: [`causes`] lists
        /// it after the cause and its sources.
        fn after(earlier: impl Into<BoxError>) { rare.get_or_insert_default().earlier = Some(earlier.into()) }

        /// Marks the error as a replay: it comes from a record, not from a run for this caller.
        fn replayed(replay: Replay) { rare.get_or_insert_default().replay = Some(replay) }
    }

    /// The cause, if it is not shared.
    #[must_use]
    pub fn into_cause(self) -> Option<BoxError> {
        match self.cause? {
            Cause::Owned(cause) => Some(cause),
            Cause::Shared(_) => None,
        }
    }

    /// Marks the call as already retried: outer layers must not retry it.
    #[must_use]
    pub const fn exhausted(mut self) -> Self {
        self.exhausted = true;
        self
    }

    /// Marks the error as made by a layer; every layer marks its errors. If a tool function returns such
    /// an error, it is about a call that the tool made itself
    /// (`classify::tool_function` of `tr-core`).
    #[must_use]
    pub const fn by_layer(mut self) -> Self {
        self.by_layer = true;
        self
    }

    /// Marks this as the information of a `T`: behind any other error it is about what happened in an
    /// inner layer.
    #[doc(hidden)]
    #[must_use]
    pub fn of_a<T: Error + 'static>(mut self) -> Self {
        self.rare.get_or_insert_default().owner = Some(<dyn Error>::is::<T>);
        self
    }

    /// Marks it as a wrapper's, around an error that no layer has judged: a reader that can tell more of that
    /// than its type does so.
    pub(crate) const fn transparent(mut self) -> Self {
        self.is_transparent = true;
        self
    }

    /// The cause, if that is to be judged instead.
    pub(crate) fn unjudged(&self) -> Option<&(dyn Error + 'static)> {
        self.source().filter(|_| self.is_transparent)
    }

    /// Whether this can be the information of `error`.
    pub(crate) fn may_belong_to(&self, error: &(dyn Error + 'static)) -> bool {
        self.rare.as_ref().and_then(|rare| rare.owner).is_none_or(|is_owner| is_owner(error))
    }

    /// The record that the error was replayed from, if it was.
    #[must_use]
    pub fn replay(&self) -> Option<Replay> {
        self.rare.as_ref()?.replay
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Whether the tool ran.
    #[must_use]
    pub const fn ran(&self) -> Ran {
        self.ran
    }

    /// The verdict.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether a layer made the error, and not a tool.
    #[must_use]
    pub const fn is_by_layer(&self) -> bool {
        self.by_layer
    }

    /// Whether an inner layer has already retried.
    #[must_use]
    pub const fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// The same as a [`Classification`], borrowed.
    #[must_use]
    pub fn classification(&self) -> Classification<'_> {
        Classification {
            verdict: self.verdict,
            ran: self.ran,
            code: &self.code,
            exhausted: self.exhausted,
        }
    }
}

impl fmt::Display for FailureInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ran = match self.ran {
            Ran::No => "the tool did not run",
            Ran::Yes => "the tool ran",
            Ran::Unknown => "the tool may have run",
        };
        write!(f, "{}: {ran}", self.code)
    }
}

impl Error for FailureInfo {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.cause.as_ref()? {
            Cause::Owned(cause) => Some(&**cause),
            Cause::Shared(cause) => Some(&**cause),
        }
    }
}

/// The error and all its sources, outermost first, then the [earlier](FailureInfo::after) failure that
/// led to it with its own.
pub fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    let mut earlier = None;
    iter::successors(Some(error), move |&error| {
        if let Some(info) = error.downcast_ref::<FailureInfo>() {
            let own = info.rare.as_ref().and_then(|rare| rare.earlier.as_deref());
            earlier = earlier.or(own.map(|earlier| earlier as _));
        }
        error.source().or_else(|| earlier.take())
    })
}

/// The first error of type `T` in the chain, the error itself included.
#[must_use]
pub fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// The outermost [`FailureInfo`] in the chain.
#[must_use]
pub fn failure_info<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e FailureInfo> {
    find(error)
}

/// The innermost error that is not a [`FailureInfo`]: the original failure.
#[must_use]
pub fn root_cause<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    causes(error).filter(|error| !error.is::<FailureInfo>()).last().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;

    #[test]
    fn an_earlier_failure_comes_behind_the_cause() {
        let refused =
            FailureInfo::new(code::CIRCUIT_OPEN, Ran::No, Verdict::TRANSIENT).because("open");
        let both = FailureInfo::new(code::CIRCUIT_OPEN, Ran::Unknown, Verdict::TRANSIENT)
            .because(refused)
            .after("reset by peer");
        let texts: Vec<_> = causes(&both).map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "circuit_open: the tool may have run",
                "circuit_open: the tool did not run",
                "open",
                "reset by peer"
            ]
        );
        assert_eq!(root_cause(&both).to_string(), "reset by peer");
        assert_eq!(failure_info(&both).unwrap().ran(), Ran::Unknown);
    }
}
