//! The errors of calls that the turn ends.
use std::time::Duration;
use thiserror::Error;
use tr_core::{FailureInfo, Ran, Verdict, code, internal::HumanDuration};

/// A call that the turn ended, or never started.
///
/// Its [`FailureInfo`] says whether the tool ran.
#[derive(Debug, Error)]
#[error("{why}")]
pub(crate) struct Stopped {
    why: Why,
    #[source]
    facts: FailureInfo,
}

/// Why, and whether the tool ran where that is not always the same.
#[derive(Debug, Error)]
pub(crate) enum Why {
    #[error("Call timeout after {}", HumanDuration(*.0))]
    Call(Duration, Ran),
    #[error("Turn timeout after {}", HumanDuration(*.0))]
    Turn(Duration, Ran),
    /// The tool panicked, or a layer around it did.
    #[error("The tool panicked")]
    Panicked,
    #[error("The tool ran, but its answer cannot be read")]
    NotKept,
    /// The result of a call has no value at the pointer that the params use.
    #[error("The result of {call} has no value at {at:?}")]
    Missing { call: Box<str>, at: Box<str> },
    /// None of its tools is available.
    #[error("Unknown tool {0}")]
    NoTool(Box<str>),
    #[error("Its dependency {0} has no result")]
    Dependency(Box<str>),
    #[error("Cancelled by the caller")]
    Cancelled(Ran),
}

impl From<Why> for Stopped {
    fn from(why: Why) -> Self {
        let (code, ran, verdict) = match why {
            Why::Call(_, ran) | Why::Turn(_, ran) => (code::TIMEOUT, ran, Verdict::TRANSIENT),
            Why::Panicked => ("panicked", Ran::Unknown, Verdict::Permanent),
            Why::NotKept => (code::ANSWER_NOT_KEPT, Ran::Yes, Verdict::Permanent),
            Why::Missing { .. } => ("missing_input", Ran::No, Verdict::Permanent),
            Why::NoTool(_) => ("no_such_tool", Ran::No, Verdict::Permanent),
            Why::Dependency(_) => ("dependency_failed", Ran::No, Verdict::Permanent),
            Why::Cancelled(ran) => (code::CANCELLED, ran, Verdict::Cancelled),
        };
        Self { why, facts: FailureInfo::new(code, ran, verdict).by_layer() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_names_itself() {
        let seconds = Duration::from_secs_f64;
        for (why, text) in [
            (Why::Call(seconds(30.0), Ran::Unknown), "Call timeout after 30s"),
            (Why::Turn(seconds(1.5), Ran::No), "Turn timeout after 1.5s"),
            (Why::Call(seconds(0.25), Ran::Unknown), "Call timeout after 250ms"),
        ] {
            assert_eq!(Stopped::from(why).to_string(), text);
        }
    }
}
