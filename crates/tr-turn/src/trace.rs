//! Traces of turns: errors, their classes, breakers, decisions, outcomes.
mod json;
pub(crate) mod log;
mod waterfall;

pub(crate) use self::log::{Log, Run};
use std::{fmt, sync::Arc, time::Duration};
use tr_core::{BreakerState, Ran, Verdict};

/// The trace of a turn: its entries in order.
///
/// [`to_json_lines`](Self::to_json_lines) writes it for programs; its [`Display`](fmt::Display) is
/// a waterfall for people.
#[derive(Clone, Debug)]
pub struct Trace {
    pub(crate) turn: Arc<str>,
    /// When the turn began, in milliseconds since the Unix epoch.
    pub(crate) began_ms: u64,
    pub(crate) entries: Vec<Entry>,
}

/// One entry of a trace. Fields are added in minor versions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The time since the turn started.
    pub at: Duration,
    /// The call's name in the plan; `None` for the turn itself.
    pub call: Option<Arc<str>>,
    /// Its tool, or the alternative that runs.
    pub tool: Option<Arc<str>>,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The event.
    pub fact: Fact,
}

/// The events of a turn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fact {
    /// The turn began.
    TurnStarted {
        /// How many calls it has.
        calls: usize,
        /// How long it may take.
        timeout: Duration,
    },
    /// A call's tool, or an alternative, was started.
    ToolStarted,
    /// An attempt, a call or the turn ran out of time.
    ToolTimeout {
        /// After this long.
        after: Duration,
    },
    /// An attempt failed.
    ToolError {
        /// The stable code.
        code: Box<str>,
        /// The message of the tool or a layer, without secrets.
        error: Box<str>,
        /// How it was classified.
        verdict: Verdict,
        /// The reason for that class.
        reason: &'static str,
        /// Whether the tool ran.
        ran: Ran,
        /// The last known state of the tool's breaker; closed by default.
        breaker: BreakerState,
    },
    /// A breaker changed its state.
    CircuitBreaker {
        /// Which.
        breaker: Box<str>,
        /// From this state.
        from: BreakerState,
        /// To this.
        to: BreakerState,
    },
    /// A decision about a failure.
    RecoveryDecision {
        /// `Retry`, `NoRetry`, or a [`Recovery`](crate::Recovery).
        decision: &'static str,
        /// Why.
        reason: Box<str>,
        /// When the retry follows.
        delay: Option<Duration>,
    },
    /// A call starts with a default value instead of a result.
    DefaultValueUsed {
        /// Instead of the result of this call.
        instead_of: Arc<str>,
    },
    /// An alternative tool runs.
    AlternativeToolUsed {
        /// Instead of this tool.
        instead_of: Arc<str>,
    },
    /// A call ended.
    ToolOutcome {
        /// How.
        outcome: Outcome,
        /// Whether its tool ran.
        ran: Ran,
        /// The outcome as a sentence.
        message: Box<str>,
    },
    /// A call is escalated to the user.
    Escalated {
        /// The message for the user.
        message: Box<str>,
    },
    /// The turn ended.
    TurnEnded {
        /// The result of the turn in one sentence.
        summary: Box<str>,
    },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It has a result.
    Success,
    /// It failed.
    Failed,
    /// It timed out, or the turn did.
    TimedOut,
    /// It was not started, because a call that it needs has no result.
    Skipped,
    /// It was cancelled.
    Cancelled,
}

/// The name in traces.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Trace {
    /// The entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Fact {
    /// The sentence of this fact, where it has one: `Circuit breaker opened for flight_search`.
    #[must_use]
    pub fn sentence(&self, entry: &Entry) -> Option<String> {
        let call = entry.call.as_deref().unwrap_or_default();
        Some(match self {
            Self::CircuitBreaker { breaker, to, .. } => {
                let how = match to {
                    BreakerState::Open => "opened",
                    BreakerState::HalfOpen => "half-opened",
                    BreakerState::Closed => "closed",
                    BreakerState::ForcedOpen => "forced open",
                };
                format!("Circuit breaker {how} for {breaker}")
            }
            Self::DefaultValueUsed { .. } => format!("Used default value for {call}"),
            Self::AlternativeToolUsed { .. } => "Used alternative tool".to_owned(),
            Self::ToolOutcome { message, .. } | Self::Escalated { message } => {
                message.clone().into()
            }
            Self::TurnEnded { summary } => summary.clone().into(),
            _ => return None,
        })
    }
}
