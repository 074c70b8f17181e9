//! What is said of a call that was not made, because an equal one may have run.
use crate::terminal::short_id;
use std::{fmt, time::Duration};
use tool_reliability::telemetry::TARGET;
use tr_core::{FailureInfo, Ran, ToolCall, Verdict, canonical::Key, code, printable, rfc3339};

/// What is known of the earlier call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// It was given up or cut off before its answer came.
    NoAnswer,
    /// Its client has cancelled it before its answer came.
    Cancelled,
    /// Its answer came after it was given up, and does not say whether it ran.
    LateAnswer,
    /// It was answered with a failure that does not say whether it ran.
    Failure,
    /// Another process has recorded that it may have run.
    Recorded,
    /// Its record cannot be read.
    Unreadable,
    /// It is another client's, was cut off, and runs.
    Running,
    /// It is another client's, was cut off, and has ended since.
    Ended(u64),
}

/// How a call ended that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It did not run.
    Not,
    /// It may have run.
    Unknown,
    /// It ended at this time, in milliseconds since 1970, and may have a record.
    At { unix_ms: u64, record: Option<Key> },
}

impl fmt::Display for Earlier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAY: &str = "that earlier call may have run; this one did not run";
        let why = match self {
            Self::NoAnswer => "its outcome is unknown, since its answer never came",
            Self::Cancelled => {
                "its outcome is unknown, since it was cancelled before its answer came"
            }
            Self::LateAnswer => {
                "its outcome is unknown, since its answer came too late and does not say whether it ran"
            }
            Self::Failure => {
                "its outcome is unknown, since it failed in a way that does not say whether it ran"
            }
            Self::Recorded => "its outcome is unknown",
            Self::Unreadable => "its record cannot be read",
            Self::Running => {
                return f.write_str(
                    "the same call with the same arguments was sent before by a client that was cut off, and is running: this one did not run",
                );
            }
            Self::Ended(unix_ms) => {
                let at = rfc3339(*unix_ms).to_string();
                let time = at.get(11..16).unwrap_or(&at);
                return write!(
                    f,
                    "the same call with the same arguments was sent before by a client that was cut off, and ended at {time} UTC: this one did not run"
                );
            }
        };
        write!(f, "the same call with the same arguments was sent before, and {why}: {MAY}")
    }
}

/// A call that is not run, because an equal one may have run.
#[derive(Debug, thiserror::Error)]
#[error("{earlier}")]
pub(crate) struct BlockedByEqual {
    #[source]
    facts: FailureInfo,
    /// What is known of the call that blocks it.
    pub(super) earlier: Earlier,
    /// That call's record.
    pub(super) key: Option<Key>,
    /// The key of that call, with or without a record that outlives the guard.
    pub(in crate::engine) call: Option<Key>,
    /// For how long it is still blocked; zero if that is not known.
    left: Duration,
    /// The tool, if its effect is not declared.
    undeclared: Option<Box<str>>,
}

impl BlockedByEqual {
    pub(crate) fn by(earlier: Earlier, key: Option<Key>, left: Duration) -> Self {
        let facts = FailureInfo::new(code::OUTCOME_UNKNOWN, Ran::Unknown, Verdict::Permanent);
        Self { facts, earlier, key, call: key, left, undeclared: None }
    }

    /// Blocked by the cut-off call of another client; nothing is known of its end while it runs.
    pub(crate) fn by_cut(end: Option<Ended>) -> Self {
        match end {
            Some(Ended::At { unix_ms, record }) => {
                Self::by(Earlier::Ended(unix_ms), record, Duration::ZERO)
            }
            _ => Self::by(Earlier::Running, None, Duration::ZERO),
        }
    }

    /// Its record cannot be read.
    pub(crate) fn unreadable(self) -> Self {
        Self { earlier: Earlier::Unreadable, ..self }
    }

    /// Names this call's tool, if its effect is not declared.
    pub(crate) fn of(mut self, call: &ToolCall) -> Self {
        let parts = call.parts();
        self.undeclared = (!parts.effect_declared).then(|| parts.tool.label().into());
        self
    }

    /// Tells the operator, who may settle its record.
    pub(crate) fn log(&self, tool: &str) {
        let record = self.key.as_ref().map(short_id).unwrap_or_default();
        let why = self.earlier.to_string();
        tracing::warn!(target: TARGET, event = "equal_call_refused", tool, record, why);
    }

    /// Where the model turns to.
    pub(crate) fn advice(&self) -> String {
        let mut advice = match (&self.key, self.left.as_secs().div_ceil(60)) {
            (Some(key), _) if self.earlier == Earlier::Cancelled => {
                let record = short_id(key);
                format!(
                    " [record {record}: to go on, check whether it ran; if not, the user can release it]"
                )
            }
            (Some(key), _) => ask_about(key),
            (None, 0) => " [ask the user before you make another]".to_owned(),
            (None, minutes) => {
                format!(" [calls equal to it are refused for another {minutes} min: ask the user]")
            }
        };
        if let Some(tool) = &self.undeclared {
            let tool = printable(tool);
            advice.push_str(&format!(
                " [if {tool} changes nothing, the user can declare that to the guard]"
            ));
        }
        advice
    }
}

/// The model gets no command: settling is for people.
pub(crate) fn ask_about(key: &Key) -> String {
    format!(" [record {}: ask the user]", short_id(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_that_is_known_is_said_and_no_command() {
        let key = Key::from_bytes([9; 32]);
        let (soon, none) = (Duration::from_secs(500), Duration::ZERO);
        for (barred, words) in [
            (
                BlockedByEqual::by(Earlier::NoAnswer, None, soon),
                "its answer never came: that earlier",
            ),
            (BlockedByEqual::by(Earlier::LateAnswer, None, soon), "its answer came too late"),
            (
                BlockedByEqual::by(Earlier::Failure, Some(key), soon),
                "does not say whether it ran: that",
            ),
            (
                BlockedByEqual::by(Earlier::Recorded, Some(key), soon),
                "its outcome is unknown: that",
            ),
            (
                BlockedByEqual::by(Earlier::Unreadable, Some(key), soon),
                "record cannot be read: that",
            ),
            (BlockedByEqual::by_cut(None), "is running: this one did not run"),
            (
                BlockedByEqual::by_cut(Some(Ended::At { unix_ms: 43_380_000, record: Some(key) })),
                "ended at 12:03 UTC: this one",
            ),
        ] {
            let said = format!("{barred}{}", barred.advice());
            assert!(said.contains(words), "{said}");
            let short = short_id(&key);
            assert_eq!(said.contains(&short), barred.key.is_some(), "{said}");
            assert_eq!(
                said.contains("for another 9 min"),
                barred.key.is_none() && barred.left > none
            );
            assert!(said.contains("ask the user") && !said.contains("settle"), "{said}");
            assert!(!said.contains("tool-guard"), "{said}");
        }
    }

    #[test]
    fn only_of_an_undeclared_tool_it_is_said_that_it_may_be_declared() {
        let call = ToolCall::new("look\u{1b}up", tr_core::Params::empty_object());
        let advice = |call: &ToolCall| BlockedByEqual::by_cut(None).of(call).advice();
        let said = advice(&call);
        assert!(said.contains("up changes nothing") && !said.contains('\u{1b}'), "{said}");
        assert!(!advice(&call.effect(tr_core::Effect::Mutating)).contains("changes nothing"));
    }
}
