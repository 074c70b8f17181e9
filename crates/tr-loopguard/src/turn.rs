//! The failures of one turn: pure, and bounded by the limits.
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// When a turn's calls are a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) identical: u32,
    pub(crate) per_turn: u32,
}

/// Which call failed: tool and args.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallHash(pub(crate) u64);

/// How it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorHash(pub(crate) u64);

/// What to do about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing.
    Continue,
    /// The same call failed the same way so many times.
    LoopDetected(u32),
    /// So many calls failed.
    HardCap(u32),
}

/// The failures of one turn that still count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    failures: VecDeque<Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    call: CallHash,
    error: ErrorHash,
    at: Instant,
}

impl Turn {
    /// Whether `call` may run.
    pub(crate) fn admit(&self, limits: Limits, call: impl FnOnce() -> CallHash) -> Decision {
        let total = self.total();
        if total >= limits.per_turn {
            return Decision::HardCap(total);
        }
        if total < limits.identical {
            return Decision::Continue;
        }
        let call = call();
        let mine = self.failures.iter().filter(|failure| failure.call == call);
        let worst = mine.map(|failure| self.count(call, failure.error)).max().unwrap_or(0);
        if worst >= limits.identical { Decision::LoopDetected(worst) } else { Decision::Continue }
    }

    /// Counts a failure; the turn's limit speaks before the loop's.
    pub(crate) fn fail(
        &mut self,
        limits: Limits,
        call: CallHash,
        error: ErrorHash,
        now: Instant,
    ) -> Decision {
        // Past the limit no call is admitted; those already under way need no more room.
        if self.total() < limits.per_turn {
            self.failures.push_back(Failure { call, error, at: now });
        }
        let (total, identical) = (self.total(), self.count(call, error));
        if total >= limits.per_turn {
            Decision::HardCap(total)
        } else if identical >= limits.identical {
            Decision::LoopDetected(identical)
        } else {
            Decision::Continue
        }
    }

    /// Forgets failures that are older than `memory`.
    pub(crate) fn expire(&mut self, memory: Duration, now: Instant) {
        while self
            .failures
            .front()
            .is_some_and(|oldest| now.saturating_duration_since(oldest.at) >= memory)
        {
            self.failures.pop_front();
        }
    }

    /// When the last failure was.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.failures.back().map(|failure| failure.at)
    }

    fn total(&self) -> u32 {
        u32::try_from(self.failures.len()).unwrap_or(u32::MAX)
    }

    fn count(&self, call: CallHash, error: ErrorHash) -> u32 {
        let same =
            self.failures.iter().filter(|failure| failure.call == call && failure.error == error);
        u32::try_from(same.count()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[expect(clippy::disallowed_methods, reason = "a base for made-up times")]
    fn base() -> Instant {
        Instant::now()
    }

    proptest! {
        /// Against counters that never forget.
        #[test]
        fn counts_as_the_obvious_model_does(
            identical in 1u32..5, per_turn in 1u32..9,
            steps in prop::collection::vec((0u64..3, 0u64..3), 0..40),
        ) {
            let limits = Limits { identical, per_turn };
            let now = base();
            let mut turn = Turn::default();
            let mut counts: HashMap<(u64, u64), u32> = HashMap::new();
            let mut total = 0;
            for (call, error) in steps {
                let worst = (0..3).filter_map(|error| counts.get(&(call, error))).max().copied().unwrap_or(0);
                let expected = if total >= per_turn {
                    Decision::HardCap(total)
                } else if worst >= identical {
                    Decision::LoopDetected(worst)
                } else {
                    Decision::Continue
                };
                prop_assert_eq!(turn.admit(limits, || CallHash(call)), expected);
                if expected != Decision::Continue {
                    continue;
                }
                total += 1;
                let count = counts.entry((call, error)).or_default();
                *count += 1;
                let expected = if total >= per_turn {
                    Decision::HardCap(total)
                } else if *count >= identical {
                    Decision::LoopDetected(*count)
                } else {
                    Decision::Continue
                };
                prop_assert_eq!(turn.fail(limits, CallHash(call), ErrorHash(error), now), expected);
                prop_assert!(turn.failures.len() <= per_turn as usize);
            }
        }
    }

    #[test]
    fn old_failures_expire() {
        let limits = Limits { identical: 2, per_turn: 5 };
        let (start, minute) = (base(), Duration::from_secs(60));
        let mut turn = Turn::default();
        turn.fail(limits, CallHash(1), ErrorHash(1), start);
        turn.fail(limits, CallHash(1), ErrorHash(1), start + minute / 2);
        assert_eq!(turn.admit(limits, || CallHash(1)), Decision::LoopDetected(2));
        turn.expire(minute, start + minute);
        assert_eq!(turn.admit(limits, || CallHash(1)), Decision::Continue);
        turn.expire(minute, start + minute * 3 / 2);
        assert_eq!(turn.last(), None);
    }
}
