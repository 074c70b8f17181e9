//! A count of successes that one stripe of threads adds to.
use crate::{
    pace::Pace,
    settings::Settings,
    stand::Lease,
    sync::{AtomicU64, Ordering::Relaxed},
};
use tr_core::CoarseInstant;

/// Successes of one generation, in one word: the generation above, the count below.
///
/// A success is added only if its generation is still the lane's: it cannot slip into another one.
/// All lanes of a breaker are shut while its machine works, so that a success is either counted
/// before that or waits for its turn.
#[derive(Debug)]
pub(crate) struct Lane(AtomicU64);

/// The lanes of one breaker.
#[derive(Debug)]
pub(crate) enum Lanes {
    /// All threads share one: the least memory.
    One(Pace, Lane),
    /// One for each stripe.
    Sharded(Lease),
}

impl Lanes {
    pub(crate) fn one(settings: &Settings) -> Self {
        Self::One(Pace::new(settings), Lane::shut_from_the_start())
    }

    pub(crate) fn striped(settings: &Settings) -> Self {
        Self::Sharded(Lease::new(settings))
    }

    /// Counts a success, or says that the machine has to be asked.
    #[inline]
    pub(crate) fn count(
        &self,
        generation: u32,
        stripe: usize,
        began: Option<CoarseInstant>,
        now: impl Fn() -> CoarseInstant,
    ) -> bool {
        match self {
            Self::One(pace, lane) => {
                (pace.is_timeless() || pace.allows(began, now()))
                    && lane.add(generation, pace.enough())
            }
            Self::Sharded(stand) => stand.count(generation, stripe, began, now),
        }
    }

    /// The first generation that no call in flight can be of.
    pub(crate) fn first_generation(&self) -> u32 {
        match self {
            Self::One(..) => 0,
            Self::Sharded(stand) => stand.first_generation(),
        }
    }

    pub(crate) fn pace(&self) -> &Pace {
        match self {
            Self::One(pace, _) => pace,
            Self::Sharded(stand) => &stand.pace,
        }
    }

    /// Shuts all and takes what was counted.
    pub(crate) fn shut(&self) -> u64 {
        match self {
            Self::One(_, lane) => lane.shut().into(),
            Self::Sharded(stand) => stand.lanes().map(|lane| u64::from(lane.shut())).sum(),
        }
    }

    /// Opens all to successes of this generation, so many being counted already.
    pub(crate) fn open(&self, generation: u32, counted: u32) {
        match self {
            Self::One(_, lane) => lane.open(generation, counted),
            Self::Sharded(stand) => {
                for (n, lane) in stand.lanes().enumerate() {
                    lane.open(generation, if n == 0 { counted } else { 0 });
                }
            }
        }
    }
}

/// In place of a count.
const SHUT: u32 = u32::MAX;

impl Lane {
    pub(crate) fn shut_from_the_start() -> Self {
        Self(AtomicU64::new(word(0, SHUT)))
    }

    /// Adds a success, or says that the machine has to be asked.
    ///
    /// Where there are `enough` it writes nothing, so that lines stay where they are while all is
    /// well.
    #[inline]
    pub(crate) fn add(&self, generation: u32, enough: u32) -> bool {
        let mut seen = self.0.load(Relaxed);
        loop {
            if (seen >> 32) as u32 != generation || seen as u32 == SHUT {
                return false;
            }
            if seen as u32 >= enough {
                return true;
            }
            match self.0.compare_exchange_weak(seen, seen + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Shuts it and takes what was counted.
    pub(crate) fn shut(&self) -> u32 {
        match self.0.swap(word(0, SHUT), Relaxed) as u32 {
            SHUT => 0,
            count => count,
        }
    }

    /// Opens it to successes of this generation.
    pub(crate) fn open(&self, generation: u32, counted: u32) {
        self.0.store(word(generation, counted), Relaxed);
    }
}

const fn word(generation: u32, count: u32) -> u64 {
    (generation as u64) << 32 | count as u64
}

#[cfg(all(test, not(tr_loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_only_its_own_generation() {
        let lane = Lane::shut_from_the_start();
        assert!(!lane.add(0, 9), "shut");
        lane.open(7, 0);
        assert!(lane.add(7, 9) && lane.add(7, 9));
        assert!(!lane.add(6, 9) && !lane.add(8, 9));
        assert_eq!(lane.shut(), 2);
        assert!(!lane.add(7, 9), "shut again");
        assert_eq!(lane.shut(), 0);
    }

    #[test]
    fn what_is_enough_is_counted_and_no_more() {
        let lane = Lane::shut_from_the_start();
        lane.open(3, 0);
        for _ in 0..5 {
            assert!(lane.add(3, 4));
        }
        assert_eq!(lane.shut(), 4);
        assert!(!lane.add(3, 4));
    }
}
