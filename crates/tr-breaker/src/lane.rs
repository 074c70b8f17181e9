//! A count of successes that one stripe of threads adds to.
use crate::sync::{AtomicU64, Ordering::Relaxed, STRIPES};
use std::array;

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
    One(Lane),
    /// One for each stripe.
    Striped(Box<[Apart; STRIPES]>),
}

/// On a line of its own (two, since processors fetch pairs), so that threads of different stripes
/// do not disturb one another.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Apart(Lane);

impl Lanes {
    pub(crate) fn one() -> Self {
        Self::One(Lane::shut_from_the_start())
    }

    pub(crate) fn striped() -> Self {
        Self::Striped(Box::new(array::from_fn(|_| Apart(Lane::shut_from_the_start()))))
    }

    /// The lane of this stripe.
    #[inline]
    pub(crate) fn of(&self, stripe: usize) -> &Lane {
        match self {
            Self::One(lane) => lane,
            Self::Striped(lanes) => &lanes[stripe].0,
        }
    }

    /// Shuts all and takes what was counted.
    pub(crate) fn shut(&self) -> u64 {
        self.each().map(|lane| u64::from(lane.shut())).sum()
    }

    /// Opens all to successes of this generation, so many being counted already.
    pub(crate) fn open(&self, generation: u32, counted: u32) {
        for (n, lane) in self.each().enumerate() {
            lane.open(generation, if n == 0 { counted } else { 0 });
        }
    }

    fn each(&self) -> impl Iterator<Item = &Lane> {
        (0..if let Self::One(_) = self { 1 } else { STRIPES }).map(|stripe| self.of(stripe))
    }
}

/// In place of a count.
const SHUT: u32 = u32::MAX;

impl Lane {
    fn shut_from_the_start() -> Self {
        Self(AtomicU64::new(word(0, SHUT)))
    }

    /// Adds a success, or says that the machine has to be asked.
    #[inline]
    pub(crate) fn add(&self, generation: u32) -> bool {
        let mut seen = self.0.load(Relaxed);
        loop {
            // A full lane is emptied by asking.
            if seen >= word(generation, SHUT - 1) || seen < word(generation, 0) {
                return false;
            }
            match self.0.compare_exchange_weak(seen, seen + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Shuts it and takes what was counted.
    fn shut(&self) -> u32 {
        match self.0.swap(word(0, SHUT), Relaxed) as u32 {
            SHUT => 0,
            count => count,
        }
    }

    /// Opens it to successes of this generation.
    fn open(&self, generation: u32, counted: u32) {
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
        assert!(!lane.add(0), "shut");
        lane.open(7, 0);
        assert!(lane.add(7) && lane.add(7));
        assert!(!lane.add(6) && !lane.add(8));
        assert_eq!(lane.shut(), 2);
        assert!(!lane.add(7), "shut again");
        assert_eq!(lane.shut(), 0);
    }

    #[test]
    fn a_full_lane_asks_to_be_emptied_and_loses_nothing() {
        let lane = Lane(AtomicU64::new(word(3, SHUT - 2)));
        assert!(lane.add(3));
        assert!(!lane.add(3));
        assert_eq!(lane.shut(), SHUT - 1);
    }
}
