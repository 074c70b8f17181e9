//! A count of successes that one stripe of threads adds to.
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// Successes of one generation, in one word: the generation above, the count below.
///
/// A success is added only if its generation is still the lane's: it cannot slip into another one.
/// All lanes of a breaker are shut while its machine works, so that a success is either counted
/// before that or waits for its turn. On a line of its own (two, since processors fetch pairs), so
/// that threads of different stripes do not disturb one another.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Lane(AtomicU64);

/// In place of a count.
const SHUT: u32 = u32::MAX;

impl Lane {
    pub(crate) fn shut_from_the_start() -> Self {
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
    pub(crate) fn shut(&self) -> u32 {
        match self.0.swap(word(0, SHUT), Relaxed) as u32 {
            SHUT => 0,
            count => count,
        }
    }

    /// Opens it, empty, to successes of this generation.
    pub(crate) fn open(&self, generation: u32) {
        self.0.store(word(generation, 0), Relaxed);
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
        lane.open(7);
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
