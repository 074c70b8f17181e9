//! A policy's numbers, small enough to be copied into every call.
use crate::{Anchor, Policy, policy::nanos};
use std::{sync::Arc, time::Duration};

/// A policy's numbers. A service keeps these rather than the policy: they are copied for every
/// call, and most calls never look at them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    base: u64,
    multiplier: f64,
    /// All ones where there is none, as for `max_elapsed`.
    cap: u64,
    max_elapsed: u64,
    jitter: (f64, f64),
    attempts: u32,
    anchor: Anchor,
}

impl Terms {
    pub(crate) const fn of(policy: &Policy) -> Self {
        let &Policy { attempts, base, multiplier, cap, jitter, anchor, max_elapsed, .. } = policy;
        Self {
            base: nanos(base),
            multiplier,
            cap: or_never(cap),
            max_elapsed: or_never(max_elapsed),
            jitter,
            attempts,
            anchor,
        }
    }

    /// The policy again.
    pub(crate) fn policy(self, only_codes: Option<Arc<[Box<str>]>>) -> Policy {
        let Self { base, multiplier, cap, max_elapsed, jitter, attempts, anchor } = self;
        let unless_never = |nanos| (nanos < u64::MAX).then(|| Duration::from_nanos(nanos));
        Policy {
            attempts,
            base: Duration::from_nanos(base),
            multiplier,
            cap: unless_never(cap),
            jitter,
            anchor,
            max_elapsed: unless_never(max_elapsed),
            only_codes,
        }
    }
}

const fn or_never(duration: Option<Duration>) -> u64 {
    match duration {
        Some(duration) => nanos(duration),
        None => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        for policy in [Policy::tool_reliability(), Policy::error_handling(), Policy::utee()] {
            assert_eq!(Terms::of(&policy).policy(None), policy);
        }
        assert!(size_of::<Terms>() <= 56);
    }
}
