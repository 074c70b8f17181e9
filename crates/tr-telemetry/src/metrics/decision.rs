//! What enforcing would have done to a call, where it was not done: the decisions of shadow mode.
use opentelemetry::KeyValue;
use tr_core::{Event, code};

/// A decision that was counted and not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// A failed attempt would have been retried.
    Retry,
    /// A breaker would have rejected the call.
    BreakerRejection,
    /// A record would have answered.
    Replay,
    /// The call would have waited for the running one with the same key.
    Join,
    /// A mutating call that may have run already would have been refused.
    OutcomeUnknown,
    /// The key came with other params, and the call would have been refused.
    KeyConflict,
    /// The loop guard would have refused the call.
    LoopBlock,
    /// The loop guard would have added a note for the model.
    LoopNote,
    /// An attempt, or the call, would have timed out.
    Timeout,
    /// The call would have been refused for another reason: its key, its params, a full store.
    Refusal,
}

impl Decision {
    /// The decision behind an event: all of `shadow` mode, else only those of a breaker in its own shadow
    /// mode.
    pub(crate) fn of(event: &Event<'_>, shadow: bool) -> Option<Self> {
        if let Event::BreakerRefused { shadow: true, .. } = event {
            return Some(Self::BreakerRejection);
        }
        if !shadow {
            return None;
        }
        Some(match event {
            Event::Retry { .. } => Self::Retry,
            Event::BreakerRefused { .. } => Self::BreakerRejection,
            Event::Replayed { state: "inflight", .. } => Self::Join,
            Event::Replayed { state: "unknown", .. } => Self::OutcomeUnknown,
            Event::Replayed { .. } => Self::Replay,
            Event::KeyConflict => Self::KeyConflict,
            Event::TimedOut { .. } => Self::Timeout,
            Event::Loop { blocked: true, .. } => Self::LoopBlock,
            Event::Loop { .. } => Self::LoopNote,
            // One for its params is counted at the end of the call.
            Event::Refused { code, .. } if *code != code::INVALID_ENVELOPE => Self::Refusal,
            _ => return None,
        })
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::BreakerRejection => "breaker_rejection",
            Self::Replay => "replay",
            Self::Join => "join",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::KeyConflict => "key_conflict",
            Self::LoopBlock => "loop_block",
            Self::LoopNote => "loop_note",
            Self::Timeout => "timeout",
            Self::Refusal => "refusal",
        }
    }

    pub(super) fn label(self) -> KeyValue {
        KeyValue::new("decision", self.as_str())
    }
}
