//! What a success has to look at before it may be counted without a lock.
use crate::{
    clock,
    settings::Settings,
    sync::{AtomicU64, Ordering::Relaxed},
};
use tr_core::CoarseInstant;

/// What a success has to look at before it may be counted without a lock.
#[derive(Debug)]
pub(crate) struct Pace {
    /// [`NOTHING`], [`AGE`], or from how many nanoseconds on a call is slow.
    rule: AtomicU64,
    /// When successes have to ask the machine again; 0 before the first of them.
    lap_end: AtomicU64,
    /// So many successes are as good as more: no rule looks farther back.
    enough: AtomicU64,
}

/// No rule asks how old a success is, or how long it took.
const NOTHING: u64 = u64::MAX;
/// Some rule asks how old it is.
const AGE: u64 = NOTHING - 1;

impl Pace {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            rule: AtomicU64::new(rule_of(settings)),
            lap_end: AtomicU64::new(0),
            enough: AtomicU64::new(settings.keep().into()),
        }
    }

    /// Restarts with other settings.
    pub(crate) fn begin(&self, settings: &Settings) {
        self.rule.store(rule_of(settings), Relaxed);
        self.lap_end.store(0, Relaxed);
        self.enough.store(settings.keep().into(), Relaxed);
    }

    #[inline]
    pub(crate) fn enough(&self) -> u32 {
        self.enough.load(Relaxed) as u32
    }

    /// Whether no success has to look at the clock.
    #[inline]
    pub(crate) fn is_timeless(&self) -> bool {
        self.rule.load(Relaxed) == NOTHING
    }

    /// Whether this success is nothing new: it took no longer than it may and is as old as others.
    pub(crate) fn allows(&self, began: Option<CoarseInstant>, now: CoarseInstant) -> bool {
        let rule = self.rule.load(Relaxed);
        let is_slow = || {
            let took = began.map(|began| now.nanos_since(began));
            took.is_some_and(|took| took > rule)
        };
        now.to_word() < self.lap_end.load(Relaxed) && (rule == AGE || !is_slow())
    }

    pub(crate) fn lap_end(&self) -> Option<CoarseInstant> {
        CoarseInstant::of_word(self.lap_end.load(Relaxed))
    }

    pub(crate) fn set_lap_end(&self, end: Option<CoarseInstant>) {
        self.lap_end.store(end.map_or(0, CoarseInstant::to_word), Relaxed);
    }
}

fn rule_of(settings: &Settings) -> u64 {
    match settings.slow {
        Some(slow) => clock::in_nanos(slow.longer_than),
        None if settings.is_timeless() => NOTHING,
        None => AGE,
    }
}

#[cfg(all(test, not(tr_loom)))]
mod tests {
    use super::*;
    use crate::Builder;
    use std::time::Duration;

    #[test]
    fn each_rule_looks_at_no_more_than_it_asks_for() {
        let (now, second) = (clock::now(), Duration::from_secs(1));
        let at = |instant| Some(CoarseInstant::at(instant));
        let pace_of = |builder: Builder| {
            let pace = Pace::new(&builder.settings());
            pace.set_lap_end(Some(CoarseInstant::at(now + second)));
            pace
        };
        for timeless in [Builder::new().failure_rate(None), Builder::new().rolling(None)] {
            assert!(pace_of(timeless).is_timeless());
        }
        let aged = pace_of(Builder::new());
        assert!(!aged.is_timeless() && aged.allows(at(now - 9 * second), CoarseInstant::at(now)));
        assert!(!aged.allows(None, CoarseInstant::at(now + second)), "the lap is over");

        let timed = pace_of(Builder::new().rolling(None).slow_calls(second, 0.5));
        assert!(!timed.is_timeless() && timed.allows(at(now - second), CoarseInstant::at(now)));
        assert!(
            !timed.allows(at(now - second - Duration::from_nanos(1)), CoarseInstant::at(now)),
            "slow"
        );
        timed.begin(&Builder::new().settings());
        assert!(!timed.allows(at(now), CoarseInstant::at(now)), "nothing was seen yet");
    }
}
