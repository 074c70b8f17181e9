//! What enforcing would have done to a call, where it was not done: the decisions of shadow mode.
use opentelemetry::KeyValue;
use tr_core::{Event, code};

/// A decision that was counted and not applied, as its label says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision(&'static str);

impl Decision {
    /// The call would have been refused for another reason: its key, its params, a full store.
    pub(crate) const REFUSAL: Self = Self("refusal");

    /// The decision behind an event: all of `shadow` mode, else only those of a breaker in its own shadow
    /// mode.
    pub(crate) fn of(event: &Event<'_>, shadow: bool) -> Option<Self> {
        Some(match event {
            // A breaker would have rejected the call.
            Event::BreakerRefused { shadow: own, .. } if shadow || *own => {
                Self("breaker_rejection")
            }
            _ if !shadow => return None,
            // A failed attempt would have been retried.
            Event::Retry { .. } => Self("retry"),
            // The call would have waited for the running one with the same key.
            Event::Replayed { state: "inflight", .. } => Self("join"),
            // A mutating call that may have run already would have been refused.
            Event::Replayed { state: "unknown", .. } => Self("outcome_unknown"),
            // A record would have answered.
            Event::Replayed { .. } => Self("replay"),
            // The key came with other params, and the call would have been refused.
            Event::KeyConflict => Self("key_conflict"),
            // An attempt, or the call, would have timed out.
            Event::TimedOut { .. } => Self("timeout"),
            // The loop guard would have refused the call.
            Event::Loop { blocked: true, .. } => Self("loop_block"),
            // The loop guard would have added a note for the model.
            Event::Loop { .. } => Self("loop_note"),
            // One for its params is counted at the end of the call.
            Event::Refused { code, .. } if *code != code::INVALID_ENVELOPE => Self::REFUSAL,
            _ => return None,
        })
    }

    pub(super) fn label(self) -> KeyValue {
        KeyValue::new("decision", self.0)
    }
}
