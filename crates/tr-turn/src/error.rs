//! The errors of calls that the turn ends.
use std::{error::Error, fmt, time::Duration};
use tr_core::{FailureInfo, Ran, Verdict, code};

/// A call that the turn ended, or never started.
///
/// Its [`FailureInfo`] says whether the tool ran.
#[derive(Debug)]
pub(crate) struct Stopped {
    why: Why,
    facts: FailureInfo,
}

#[derive(Debug)]
enum Why {
    Call(Duration),
    Turn(Duration),
    Panicked,
    Missing { call: Box<str>, at: Box<str> },
    NoTool(Box<str>),
    Dependency(Box<str>),
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

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Call(after) => write!(f, "Call timeout after {}", Compact(*after)),
            Why::Turn(after) => write!(f, "Turn timeout after {}", Compact(*after)),
            Why::Panicked => f.write_str("The tool panicked"),
            Why::Missing { call, at } => {
                write!(f, "The result of {call} has no value at {at:?}")
            }
            Why::NoTool(tool) => write!(f, "Unknown tool {tool}"),
            Why::Dependency(of) => write!(f, "Its dependency {of} has no result"),
            Why::Cancelled => f.write_str("Cancelled by the caller"),
        }
    }
}

impl Error for Stopped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.facts)
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
