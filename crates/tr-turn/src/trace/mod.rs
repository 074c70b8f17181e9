//! What happened in a turn: errors, their classes, breakers, decisions, outcomes.
mod json;
pub(crate) mod log;
mod text;
mod waterfall;

pub(crate) use self::log::{Log, Run, lock};
use std::{fmt, sync::Arc, time::Duration};
use tr_core::{BreakerState, Ran, Verdict};

/// What happened in a turn, in order.
///
/// [`to_json_lines`](Self::to_json_lines) gives it to programs, and its
/// [`Display`](fmt::Display), a waterfall, to people.
#[derive(Clone, Debug)]
pub struct Trace {
    pub(crate) turn: Arc<str>,
    /// When the turn began, in milliseconds since the Unix epoch.
    pub(crate) began_ms: u64,
    pub(crate) entries: Vec<Entry>,
}

/// Something that happened in a turn. Fields are added in minor versions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// When, since the turn began.
    pub at: Duration,
    /// The call as the plan names it; `None` for the turn itself.
    pub call: Option<Arc<str>>,
    /// Its tool, or the tool that stands in for it.
    pub tool: Option<Arc<str>>,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// What happened.
    pub fact: Fact,
}

/// What can happen in a turn.
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
    /// A call, or a tool that stands in for its own, was started.
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
        /// What the tool or a layer said, without secrets.
        error: Box<str>,
        /// How it was classified.
        verdict: Verdict,
        /// Why it was classified so.
        reason: &'static str,
        /// Whether the tool ran.
        ran: Ran,
        /// The state of the tool's breaker; closed where nobody has heard of another.
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
    /// Something was decided about a failure.
    RecoveryDecision {
        /// What: `Retry`, `NoRetry`, or a [`Recovery`](crate::Recovery).
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
    /// A tool is to stand in for another one.
    AlternativeToolUsed {
        /// For this one.
        instead_of: Arc<str>,
    },
    /// A call came to its end.
    ToolOutcome {
        /// How.
        outcome: Outcome,
        /// Whether its tool ran.
        ran: Ran,
        /// The same as a sentence.
        message: Box<str>,
    },
    /// The user is to be told of a call.
    Escalated {
        /// What to tell.
        message: Box<str>,
    },
    /// The turn ended.
    TurnEnded {
        /// What it came to, in one sentence.
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
    /// It ran out of time, its own or the turn's.
    TimedOut,
    /// It was not started, because a call that it needs has no result.
    Skipped,
    /// Somebody withdrew it.
    Cancelled,
}

impl Outcome {
    /// As traces spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Failed => "Failed",
            Self::TimedOut => "TimedOut",
            Self::Skipped => "Skipped",
            Self::Cancelled => "Cancelled",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Trace {
    /// The turn's name.
    #[must_use]
    pub fn turn(&self) -> &str {
        &self.turn
    }

    /// What happened, in order.
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
            Self::CircuitBreaker { breaker, to: BreakerState::Open, .. } => {
                format!("Circuit breaker opened for {breaker}")
            }
            Self::CircuitBreaker { breaker, to: BreakerState::HalfOpen, .. } => {
                format!("Circuit breaker half-opened for {breaker}")
            }
            Self::CircuitBreaker { breaker, to: BreakerState::Closed, .. } => {
                format!("Circuit breaker closed for {breaker}")
            }
            Self::CircuitBreaker { breaker, to: BreakerState::ForcedOpen, .. } => {
                format!("Circuit breaker forced open for {breaker}")
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
