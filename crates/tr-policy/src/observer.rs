//! The observer interface: layers report events to it.
use crate::{BreakerState, Effect, MatchedOn, Ran};
use std::{
    fmt::{self, Debug},
    time::Duration,
};

/// Receives the events of layers.
///
/// Called on the path of the call, so it must not block. Layers build an event only when an
/// observer was given and [`enabled`](Observer::enabled) says so.
pub trait Observer: Debug + Send + Sync {
    /// Whether events are wanted now.
    fn enabled(&self) -> bool {
        true
    }

    /// Receives an event of a call.
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>);
}

/// The description of a call in events. Minor versions may add fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallInfo<'r> {
    /// The tool's label.
    pub tool: &'r str,
    /// The request's id.
    pub request_id: Option<&'r str>,
    /// The id that the model gave to the call.
    pub tool_call_id: Option<&'r str>,
    /// The session.
    pub session: Option<&'r str>,
    /// Ties calls of one business operation together.
    pub correlation: Option<&'r str>,
    /// Which attempt, from 0.
    pub attempt: u32,
    /// What the tool does to the world.
    pub effect: Effect,
    /// Whether a repeat is declared safe although an earlier attempt may have run, or forbidden.
    pub repeat_safe: Option<bool>,
    /// The sensitive fields of the call, if its tool has any.
    pub sensitive: Option<Sensitive<'r>>,
}

/// The names of sensitive fields, and the params that may have them. Its `Debug` shows no params.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sensitive<'r> {
    /// The names of the tool's sensitive fields.
    pub names: &'r [Box<str>],
    /// The call's params, as JSON text.
    pub params: &'r str,
}

impl<'r> Sensitive<'r> {
    /// What `params` hold under `names`.
    #[must_use]
    pub const fn new(names: &'r [Box<str>], params: &'r str) -> Self {
        Self { names, params }
    }
}

impl Debug for Sensitive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sensitive").field("names", &self.names).finish_non_exhaustive()
    }
}

impl<'r> CallInfo<'r> {
    /// Only the tool is known; what else is, is set on it.
    ///
    /// ```
    /// let mut call = tr_policy::CallInfo::of("pay");
    /// call.session = Some("s1");
    /// ```
    #[inline]
    #[must_use]
    pub fn of(tool: &'r str) -> Self {
        Self { tool, ..Self::default() }
    }
}

/// An event of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'r> {
    /// A failed attempt is tried again after a delay.
    Retry {
        /// The attempt that failed, from 0.
        attempt: u32,
        /// Until the next.
        delay: Duration,
        /// The part of it that the server asked for; the rest is ours.
        retry_after: Option<Duration>,
        /// The code of the failure.
        reason: &'r str,
        /// How long the attempt took; of a call's first attempt, what it did before it first waited is
        /// left out.
        latency: Duration,
    },
    /// A retry was due and not made.
    RetryRefused {
        /// The attempt that failed, from 0.
        attempt: u32,
        /// What forbids it: `budget`, `deadline`, `effect`, …
        why: &'static str,
    },
    /// A breaker changed its state.
    Breaker {
        /// The breaker's key.
        breaker: &'r str,
        /// From this state.
        from: BreakerState,
        /// To this.
        to: BreakerState,
    },
    /// A breaker refused a call, or would have in shadow mode.
    BreakerRefused {
        /// The breaker's key.
        breaker: &'r str,
        /// Its state.
        state: BreakerState,
        /// The refusal was only reported; the call was admitted.
        shadow: bool,
    },
    /// A layer has as many breakers as it may: the call has none, passes, and counts nowhere.
    BreakerUncounted,
    /// A call was answered from a record.
    Replayed {
        /// What it matched.
        matched: MatchedOn,
        /// The record's state: `done`, `failed`, `cancelled`, `unknown`.
        state: &'static str,
    },
    /// The same key came with other params.
    KeyConflict,
    /// An attempt, or a call, ran out of time.
    TimedOut {
        /// After this long.
        after: Duration,
        /// Whether the tool ran.
        ran: Ran,
    },
    /// Loop detection acted on a call.
    Loop {
        /// What it found: `identical`, `turn_limit`, …
        rule: &'static str,
        /// How many calls it counted.
        count: u32,
        /// The call was not run.
        blocked: bool,
    },
    /// A session's transcript was changed, or kept from the model, because of a failure.
    Session {
        /// What was done.
        action: SessionAction,
        /// How many messages went.
        removed: u64,
    },
    /// A call was refused before any attempt.
    Refused {
        /// The code.
        code: &'r str,
        /// The tool's effect.
        effect: Effect,
    },
}

/// What was done to a session, or to one of its tool cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionAction {
    /// The transcript was kept from the model: the provider would refuse it.
    Blocked,
    /// The transcript was repaired.
    Repaired,
    /// Messages, or what was recorded of a tool cycle, were taken back.
    RolledBack,
    /// The future of a tool cycle was dropped, and it is unknown whether the tool ran.
    Abandoned,
    /// The sessions' store did not take what was to be recorded.
    NotRecorded,
    /// A failed call of a tool was recorded with its error.
    RecordedFailure,
    /// The session was validated; if it needs a repair, it was offered and not made.
    ValidateAndRepair,
    /// The session could not be repaired, and starts empty.
    Reset,
    /// Nothing could be done.
    Escalate,
}

impl SessionAction {
    /// Its name in logs and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Repaired => "repaired",
            Self::RolledBack => "rolled_back",
            Self::Abandoned => "abandoned",
            Self::NotRecorded => "not_recorded",
            Self::RecordedFailure => "recorded_failure",
            Self::ValidateAndRepair => "validate_and_repair",
            Self::Reset => "reset",
            Self::Escalate => "escalate",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SessionAction::{self, *};
    use std::collections::HashSet;

    #[test]
    fn each_action_has_a_name_of_its_own() {
        let kept = [Blocked, Repaired, RolledBack, Abandoned, NotRecorded, RecordedFailure];
        let actions = kept.into_iter().chain([ValidateAndRepair, Reset, Escalate]);
        let names: HashSet<_> = actions.map(SessionAction::as_str).collect();
        assert_eq!(names.len(), 9);
        let told = ["blocked", "repaired", "rolled_back", "abandoned", "not_recorded"];
        assert!(told.iter().all(|name| names.contains(name)));
    }
}
