//! Settings.
use crate::{clock::millis, protocol::Ttls};
use std::time::Duration;
use tr_core::manifest::TtlOverride;

/// What to do with a call whose key was used with other params.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictPolicy {
    /// Refuses it at once, whatever the state of the other call.
    #[default]
    Reject,
    /// Treats it as another call: the params become a part of the key.
    Independent,
}

/// From which parts of a call the key is derived if the call has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DerivedKeys {
    /// Derives no key: such a call has no record, and ends with its caller.
    Off,
    /// From session, tool and params, but only to join a call that was cut off: one whose caller
    /// vanished before the response, while that call runs and for the grace period after it. Any
    /// other repeat counts as intended and runs.
    CutOff,
    /// From session, turn, step, tool and params; as [`CutOff`](Self::CutOff) for a call that
    /// names no step.
    #[default]
    Step,
    /// From session, tool and params. Within the time to live every repeat is answered from the
    /// record: a polling tool returns the same response, and a second, intended payment is not
    /// made.
    Session,
}

/// The settings that every call reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) conflicts: ConflictPolicy,
    pub(crate) derived: DerivedKeys,
    pub(crate) ttls: Ttls,
    pub(crate) grace: Duration,
    /// How long a call waits for another's run.
    pub(crate) max_wait: Duration,
}

impl Config {
    /// The times to live of a call's record.
    #[inline]
    pub(crate) fn ttls(&self, cut_off: bool, tool: TtlOverride) -> Ttls {
        let or = |tool: Option<Duration>, ours| tool.map_or(ours, |ttl| millis(ttl).max(1));
        // Zero: the record ends with its call.
        let kept = |tool: Option<Duration>, ours| match tool {
            Some(Duration::ZERO) => 0,
            tool => or(tool, ours),
        };
        let inflight = or(tool.inflight, self.ttls.inflight);
        if cut_off {
            let grace = millis(self.grace);
            return Ttls { done: grace, failed: grace, inflight, unknown: grace };
        }
        Ttls {
            done: kept(tool.done, self.ttls.done),
            failed: kept(tool.failed, self.ttls.failed),
            inflight,
            unknown: or(tool.unknown, self.ttls.unknown),
        }
    }
}
