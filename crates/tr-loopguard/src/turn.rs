//! What is remembered of one turn: pure, and bounded by the limits.
use crate::{
    Signals,
    track::{Asked, End, News, Signal, Step, Track},
};
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

/// Which tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolHash(pub(crate) u64);

/// How it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorHash(pub(crate) u64);

/// Whether a failure counts, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It passes by itself.
    None,
    /// It depends on the world, which a call may change.
    Passing,
    /// It is the call's own fault.
    Lasting,
}

/// What to do about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing.
    Continue,
    /// The same call failed the same way so many times.
    LoopDetected(u32),
    /// So many calls failed.
    HardCap(u32),
    /// A signal was seen.
    Signal(Signal),
}

/// The failures of one turn that still count, and its signals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    failures: VecDeque<Failure>,
    /// Where signals are watched.
    track: Option<Box<Track>>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    call: CallHash,
    error: ErrorHash,
    at: Instant,
    /// How many identical ones there are up to it, itself included.
    nth: u32,
    /// It counts to the end of the turn.
    lasts: bool,
}

impl Turn {
    /// Whether the call may run, as far as failures say.
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
        let worst = mine.map(|failure| failure.nth).max().unwrap_or(0);
        if worst >= limits.identical { Decision::LoopDetected(worst) } else { Decision::Continue }
    }

    /// Whether the call may run. What was refused once stays refused.
    pub(crate) fn admit_watched(
        &mut self,
        limits: Limits,
        signals: &Signals,
        asked: &Asked,
    ) -> Decision {
        let found = self.admit(limits, || asked.call);
        match found {
            Decision::HardCap(_) => {
                self.failures.iter_mut().for_each(|failure| failure.lasts = true);
            }
            Decision::LoopDetected(_) => self
                .failures
                .iter_mut()
                .filter(|failure| failure.call == asked.call)
                .for_each(|failure| failure.lasts = true),
            Decision::Continue | Decision::Signal(_) => {
                let signal = self.track.as_mut().and_then(|track| track.admit(signals, asked));
                return signal.map_or(Decision::Continue, Decision::Signal);
            }
        }
        found
    }

    /// Takes down a call's end: the turn's limit speaks first, then the loop's, then the signals.
    pub(crate) fn end(
        &mut self,
        limits: Limits,
        signals: &Signals,
        step: &Step,
        weight: Weight,
    ) -> Decision {
        let call = step.asked.call;
        let (news, signal) = self.track.get_or_insert_default().record(signals, step);
        match news {
            News::None => {}
            // Failing in other words is failing.
            News::Changed if matches!(step.end, End::Failure(_)) => {}
            News::Changed => self.failures.retain(|failure| failure.lasts || failure.call != call),
            News::Progress => self.failures.retain(|failure| failure.lasts),
        }
        let found = match step.end {
            End::Failure(error) if weight != Weight::None => {
                self.fail(limits, call, error, weight, step.asked.at)
            }
            _ => Decision::Continue,
        };
        match (found, signal) {
            (Decision::Continue, Some(signal)) => Decision::Signal(signal),
            _ => found,
        }
    }

    /// Counts a failure; the turn's limit speaks before the loop's.
    pub(crate) fn fail(
        &mut self,
        limits: Limits,
        call: CallHash,
        error: ErrorHash,
        weight: Weight,
        now: Instant,
    ) -> Decision {
        let identical = 1 + self.count(call, error);
        // Past the limit no call is admitted; those already under way need no more room.
        if self.total() < limits.per_turn {
            let lasts = weight == Weight::Lasting;
            self.failures.push_back(Failure { call, error, at: now, nth: identical, lasts });
        }
        let total = self.total();
        if total >= limits.per_turn {
            Decision::HardCap(total)
        } else if identical >= limits.identical {
            Decision::LoopDetected(identical)
        } else {
            Decision::Continue
        }
    }

    /// Forgets what is older than `memory`.
    pub(crate) fn expire(&mut self, memory: Duration, now: Instant) {
        let is_old = |failure: &Failure| now.saturating_duration_since(failure.at) >= memory;
        while let Some(oldest) = self.failures.front().copied().filter(is_old) {
            self.failures.pop_front();
            let same = |failure: &&mut Failure| {
                failure.call == oldest.call && failure.error == oldest.error
            };
            self.failures.iter_mut().filter(same).for_each(|failure| failure.nth -= 1);
        }
        if let Some(track) = &mut self.track {
            track.expire(memory, now);
        }
    }

    /// When the last thing happened that is remembered; `None` if there is none.
    pub(crate) fn last(&self) -> Option<Instant> {
        let failed = self.failures.back().map(|failure| failure.at);
        failed.max(self.track.as_ref().and_then(|track| track.last()))
    }

    /// Whether nothing is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.failures.is_empty() && self.track.as_ref().is_none_or(|track| track.is_empty())
    }

    fn total(&self) -> u32 {
        u32::try_from(self.failures.len()).unwrap_or(u32::MAX)
    }

    fn count(&self, call: CallHash, error: ErrorHash) -> u32 {
        let same = |failure: &&Failure| failure.call == call && failure.error == error;
        self.failures.iter().rfind(same).map_or(0, |failure| failure.nth)
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
                prop_assert_eq!(turn.fail(limits, CallHash(call), ErrorHash(error), Weight::Lasting, now), expected);
                prop_assert!(turn.failures.len() <= per_turn as usize);
            }
        }
    }

    #[test]
    fn old_failures_expire() {
        let limits = Limits { identical: 2, per_turn: 5 };
        let (start, minute) = (base(), Duration::from_secs(60));
        let mut turn = Turn::default();
        turn.fail(limits, CallHash(1), ErrorHash(1), Weight::Lasting, start);
        turn.fail(limits, CallHash(1), ErrorHash(1), Weight::Lasting, start + minute / 2);
        assert_eq!(turn.admit(limits, || CallHash(1)), Decision::LoopDetected(2));
        turn.expire(minute, start + minute);
        assert_eq!(turn.admit(limits, || CallHash(1)), Decision::Continue);
        turn.expire(minute, start + minute * 3 / 2);
        assert_eq!(turn.last(), None);
    }
}
