//! The state of one turn: pure, and bounded by the limits.
use crate::{
    Signals,
    call::{CallHash, Decision, End, ErrorHash, RequestedCall, Step, ToolHash, Weight},
    track::{StepChange, Track},
};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// When a turn's calls count as a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) identical: u32,
    pub(crate) per_turn: u32,
}

/// How strictly the calls of a turn are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// As specified: the limit of failures ends the turn, and successes neither count nor reset.
    Letter,
    /// Only a call is refused that is identical to ones whose failure depends on the args alone. A
    /// success of the tool resets its count.
    Warn,
    /// Like `Warn`, and nothing is refused.
    Note,
}

/// How the calls of a turn are judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judge {
    pub(crate) rules: Rules,
    pub(crate) limits: Limits,
}

/// The most failures that are kept of a turn whose limit only warns, unless the limit itself is
/// higher.
const MOST_KEPT: usize = 64;

/// The failures of one turn that still count, and its signals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    failures: VecDeque<Failure>,
    /// Present where signals are enabled.
    track: Option<Box<Track>>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    call: CallHash,
    tool: ToolHash,
    error: ErrorHash,
    at: Instant,
    /// The number of identical failures up to and including this one.
    nth: u32,
    /// Whether it counts until the end of the turn: it depends on the args alone, or its call was
    /// refused.
    lasts: bool,
}

impl Turn {
    /// Whether the call may run, by the failures.
    pub(crate) fn admit(&self, judge: Judge, call: impl FnOnce() -> CallHash) -> Decision {
        let (Judge { rules, limits }, total) = (judge, self.total());
        match rules {
            Rules::Note => return Decision::Continue,
            Rules::Letter if total >= limits.per_turn => return Decision::HardCap(total),
            Rules::Letter | Rules::Warn => {}
        }
        if total < limits.identical {
            return Decision::Continue;
        }
        let call = call();
        let refuses = |failure: &Failure| rules == Rules::Letter || failure.lasts;
        let mine = self.failures.iter().filter(|failure| failure.call == call && refuses(failure));
        let worst = mine.map(|failure| failure.nth).max().unwrap_or(0);
        if worst >= limits.identical { Decision::LoopDetected(worst) } else { Decision::Continue }
    }

    /// Whether the call may run, by failures and signals. A refused call stays refused.
    pub(crate) fn admit_watched(
        &mut self,
        judge: Judge,
        signals: &Signals,
        asked: &RequestedCall,
    ) -> Decision {
        let found = self.admit(judge, || asked.call);
        match found {
            Decision::HardCap(_) | Decision::LoopDetected(_) => {
                let is_over = matches!(found, Decision::HardCap(_));
                for failure in &mut self.failures {
                    failure.lasts |= is_over || failure.call == asked.call;
                }
                found
            }
            _ if judge.rules != Rules::Letter || !signals.refuse => Decision::Continue,
            _ => {
                let signal = self.track.as_mut().and_then(|track| track.admit(signals, asked));
                signal.map_or(Decision::Continue, Decision::Signal)
            }
        }
    }

    /// Records a call's end. The turn's limit decides first, then the loop's, then the signals.
    pub(crate) fn end(
        &mut self,
        judge: Judge,
        signals: &Signals,
        step: &Step,
        weight: Weight,
    ) -> Decision {
        let RequestedCall { call, tool, .. } = step.asked;
        let (change, signal) = self.track.get_or_insert_default().record(signals, step);
        let signal = signal.filter(|signal| signals.is_due(*signal, step));
        let to_the_letter = judge.rules == Rules::Letter && !signals.refuse;
        match change {
            _ if to_the_letter => {}
            StepChange::None => {}
            // A failure with another message is still a failure.
            StepChange::Changed if matches!(step.end, End::Failure(_)) => {}
            StepChange::Changed => {
                self.failures.retain(|failure| failure.lasts || failure.call != call);
            }
            StepChange::Progress => self.failures.retain(|failure| failure.lasts),
        }
        let found = match step.end {
            End::Failure(error) => {
                let weight = if to_the_letter { Weight::Lasting } else { weight };
                self.fail(judge, &step.asked, error, weight)
            }
            End::Success { .. } => {
                self.succeeded(judge.rules, tool);
                Decision::Continue
            }
        };
        match (found, signal) {
            (Decision::Continue, Some(signal)) => Decision::Signal(signal),
            _ => found,
        }
    }

    /// Counts a failure. Where the turn's limit ends the turn, it decides before the loop's.
    pub(crate) fn fail(
        &mut self,
        Judge { rules, limits }: Judge,
        &RequestedCall { call, tool, at, .. }: &RequestedCall,
        error: ErrorHash,
        weight: Weight,
    ) -> Decision {
        let ends = rules == Rules::Letter;
        if ends && weight == Weight::None {
            return Decision::Continue;
        }
        let (identical, lasts) = (1 + self.count(call, error), weight == Weight::Lasting);
        if !ends && self.failures.len() >= MOST_KEPT.max(limits.per_turn as usize) {
            self.failures.pop_front();
        }
        // Past a limit that ends the turn no call is admitted; failures of calls in flight are not
        // stored.
        if !ends || self.total() < limits.per_turn {
            self.failures.push_back(Failure { call, tool, error, at, nth: identical, lasts });
        }
        let total = self.total();
        if ends && total >= limits.per_turn {
            Decision::HardCap(total)
        } else if identical < limits.identical {
            Decision::Continue
        } else if ends || lasts {
            Decision::LoopDetected(identical)
        } else {
            Decision::Repeated(identical)
        }
    }

    /// A tool has succeeded: resets its count, where successes reset counts.
    pub(crate) fn succeeded(&mut self, rules: Rules, tool: ToolHash) {
        if rules != Rules::Letter {
            self.failures.retain(|failure| failure.tool != tool);
        }
    }

    /// The number of failures for a warning, if they have reached a limit that only warns.
    pub(crate) fn errors(&self, Judge { rules, limits }: Judge) -> Option<u32> {
        let total = self.total();
        (rules != Rules::Letter && total >= limits.per_turn).then_some(total)
    }

    /// Drops what is older than `memory`.
    pub(crate) fn expire(&mut self, memory: Duration, now: Instant) {
        let is_old = |failure: &Failure| now.saturating_duration_since(failure.at) >= memory;
        while let Some(oldest) = self.failures.front().copied().filter(is_old) {
            self.failures.pop_front();
            let same = |failure: &&mut Failure| {
                failure.call == oldest.call && failure.error == oldest.error
            };
            let rest = self.failures.iter_mut().filter(same);
            rest.for_each(|failure| failure.nth = failure.nth.saturating_sub(1));
        }
        if let Some(track) = &mut self.track {
            track.expire(memory, now);
        }
    }

    /// The time of the last kept event; `None` if there is none.
    pub(crate) fn last(&self) -> Option<Instant> {
        let failed = self.failures.back().map(|failure| failure.at);
        failed.max(self.track.as_ref().and_then(|track| track.last))
    }

    /// Whether nothing is kept.
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

    fn judge(rules: Rules, identical: u32, per_turn: u32) -> Judge {
        Judge { rules, limits: Limits { identical, per_turn } }
    }

    fn asked(call: u64, at: Instant) -> RequestedCall {
        let (call, tool) = (CallHash(call), ToolHash(call % 2));
        RequestedCall { call, tool, poll: false, repeats: None, at }
    }

    proptest! {
        /// Against counters that never forget.
        #[test]
        fn counts_as_the_obvious_model_does(
            identical in 1u32..5, per_turn in 1u32..9,
            steps in prop::collection::vec((0u64..3, 0u64..3), 0..40),
        ) {
            let letter = judge(Rules::Letter, identical, per_turn);
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
                prop_assert_eq!(turn.admit(letter, || CallHash(call)), expected);
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
                let end = turn.fail(letter, &asked(call, now), ErrorHash(error), Weight::Lasting);
                prop_assert_eq!(end, expected);
                prop_assert!(turn.failures.len() <= per_turn as usize);
            }
        }
    }

    proptest! {
        /// A turn without a name refuses no call but those that have failed by their args alone since
        /// their tool succeeded last, and stays within its bound.
        #[test]
        fn without_a_turn_only_what_failed_by_its_args_is_refused(
            steps in prop::collection::vec((0u64..6, 0u64..4, any::<bool>()), 0..300),
        ) {
            let warn = judge(Rules::Warn, 2, 5);
            let now = base();
            let mut turn = Turn::default();
            let mut counts: HashMap<(u64, u64), u32> = HashMap::new();
            for (call, error, succeeds) in steps {
                let by_args = (0..2).filter_map(|error| counts.get(&(call, error))).max();
                let refused = turn.admit(warn, || CallHash(call));
                if turn.failures.len() < MOST_KEPT {
                    let expected = match by_args.copied().unwrap_or(0) {
                        worst if worst >= 2 => Decision::LoopDetected(worst),
                        _ => Decision::Continue,
                    };
                    prop_assert_eq!(refused, expected);
                }
                prop_assert_eq!(turn.admit(judge(Rules::Note, 2, 5), || CallHash(call)), Decision::Continue);
                if succeeds {
                    turn.succeeded(Rules::Warn, ToolHash(call % 2));
                    counts.retain(|(failed, _), _| failed % 2 != call % 2);
                } else {
                    let weight = [Weight::Lasting, Weight::Lasting, Weight::Passing, Weight::None];
                    let weight = weight[error as usize];
                    let end = turn.fail(warn, &asked(call, now), ErrorHash(error), weight);
                    let count = counts.entry((call, error)).or_default();
                    *count += 1;
                    if turn.failures.len() < MOST_KEPT {
                        let expected = match *count {
                            1 => Decision::Continue,
                            count if weight == Weight::Lasting => Decision::LoopDetected(count),
                            count => Decision::Repeated(count),
                        };
                        prop_assert_eq!(end, expected);
                    }
                }
                prop_assert!(turn.failures.len() <= MOST_KEPT);
                prop_assert_eq!(
                    turn.errors(warn).is_some(), turn.failures.len() >= 5
                );
            }
        }

        /// Whatever signals see: polls, cycles, one error under many args, successes that repeat.
        #[test]
        fn without_a_turn_no_signal_refuses(
            steps in prop::collection::vec((0u64..3, 0u64..3, 0u64..30), 0..200),
            refuse in any::<bool>(), count_transient in any::<bool>(), read_only in any::<bool>(),
        ) {
            let warn = judge(Rules::Warn, 2, 5);
            let signals = Signals::default().refuse(refuse).count_transient(count_transient);
            let mut turn = Turn::default();
            let mut at = base();
            for (call, end, pause) in steps {
                at += Duration::from_secs(pause);
                turn.expire(Duration::from_secs(60), at);
                let asked = asked(call, at);
                prop_assert_eq!(
                    turn.admit_watched(warn, &signals, &asked), Decision::Continue
                );
                let (end, weight) = match end {
                    0 => (End::Success { answer: Some(7), pending: false }, Weight::None),
                    1 => (End::Failure(ErrorHash(1)), Weight::None),
                    _ => (End::Failure(ErrorHash(2)), Weight::Passing),
                };
                turn.end(warn, &signals, &Step { asked, end, read_only }, weight);
            }
        }
    }

    #[test]
    fn old_failures_expire() {
        let letter = judge(Rules::Letter, 2, 5);
        let (start, minute) = (base(), Duration::from_secs(60));
        let mut turn = Turn::default();
        for at in [start, start + minute / 2] {
            turn.fail(letter, &asked(1, at), ErrorHash(1), Weight::Lasting);
        }
        assert_eq!(turn.admit(letter, || CallHash(1)), Decision::LoopDetected(2));
        turn.expire(minute, start + minute);
        assert_eq!(turn.admit(letter, || CallHash(1)), Decision::Continue);
        turn.expire(minute, start + minute * 3 / 2);
        assert_eq!(turn.last(), None);
    }
}
