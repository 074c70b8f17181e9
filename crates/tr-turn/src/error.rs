//! The errors of calls that the turn ends.
use std::{fmt, time::Duration};
use thiserror::Error;
use tr_core::{FailureInfo, Ran, Verdict, code};

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

#[derive(Debug, Error)]
enum Why {
    #[error("Call timeout after {}", Compact(*.0))]
    Call(Duration),
    #[error("Turn timeout after {}", Compact(*.0))]
    Turn(Duration),
    #[error("The tool panicked")]
    Panicked,
    #[error("The tool ran, but its answer cannot be read")]
    NotKept,
    #[error("The result of {call} has no value at {at:?}")]
    Missing { call: Box<str>, at: Box<str> },
    #[error("Unknown tool {0}")]
    NoTool(Box<str>),
    #[error("Its dependency {0} has no result")]
    Dependency(Box<str>),
    #[error("Cancelled by the caller")]
    Cancelled,
}

impl Stopped {
    const fn new(why: Why, code: &'static str, ran: Ran, verdict: Verdict) -> Self {
        Self { why, facts: FailureInfo::new(code, ran, verdict).by_layer() }
    }

    /// The call timed out.
    pub(crate) const fn call_timeout(after: Duration, ran: Ran) -> Self {
        Self::new(Why::Call(after), code::TIMEOUT, ran, Verdict::TRANSIENT)
    }

    /// The turn timed out.
    pub(crate) const fn turn_timeout(after: Duration, ran: Ran) -> Self {
        Self::new(Why::Turn(after), code::TIMEOUT, ran, Verdict::TRANSIENT)
    }

    /// The tool panicked, or a layer around it did.
    pub(crate) const fn panicked() -> Self {
        Self::new(Why::Panicked, "panicked", Ran::Unknown, Verdict::Permanent)
    }

    /// The tool succeeded with an answer that cannot be read.
    pub(crate) const fn not_kept() -> Self {
        Self::new(Why::NotKept, code::ANSWER_NOT_KEPT, Ran::Yes, Verdict::Permanent)
    }

    /// The result of `call` has no value at the pointer that the params use.
    pub(crate) const fn missing(call: Box<str>, at: Box<str>) -> Self {
        Self::new(Why::Missing { call, at }, "missing_input", Ran::No, Verdict::Permanent)
    }

    /// None of its tools is available.
    pub(crate) fn no_tool(tool: &str) -> Self {
        Self::new(Why::NoTool(tool.into()), "no_such_tool", Ran::No, Verdict::Permanent)
    }

    /// A call that it needs has no result.
    pub(crate) fn dependency(of: &str) -> Self {
        Self::new(Why::Dependency(of.into()), "dependency_failed", Ran::No, Verdict::Permanent)
    }

    /// It was cancelled.
    pub(crate) const fn cancelled(ran: Ran) -> Self {
        Self::new(Why::Cancelled, code::CANCELLED, ran, Verdict::Cancelled)
    }
}

/// `30s`, `1.5s`, `500ms`, as tr-timeout writes it.
struct Compact(Duration);

impl fmt::Display for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            millis @ ..1000 => write!(f, "{millis}ms"),
            millis => write!(f, "{}s", millis as f64 / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_names_itself() {
        let seconds = Duration::from_secs_f64;
        for (error, text) in [
            (Stopped::call_timeout(seconds(30.0), Ran::Unknown), "Call timeout after 30s"),
            (Stopped::turn_timeout(seconds(1.5), Ran::No), "Turn timeout after 1.5s"),
            (Stopped::call_timeout(seconds(0.25), Ran::Unknown), "Call timeout after 250ms"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
