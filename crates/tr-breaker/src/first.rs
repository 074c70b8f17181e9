//! A table that is read without a lock.
use crate::sync::OnceLock;

/// Open addressing: a slot is filled once, and never moved or emptied. At most half are full, so that each search
/// ends.
pub(crate) struct First<T: 'static> {
    slots: Box<[OnceLock<T>]>,
}

impl<T: 'static> First<T> {
    /// With room for so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { slots: (0..(2 * most).next_power_of_two()).map(|_| OnceLock::new()).collect() }
    }

    /// The one with this hash that `is` knows.
    #[inline]
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&T> {
        // Each slot is read once: an empty one may be filled, with another, by the time of a second look.
        self.from(hash).map_while(OnceLock::get).find(|value| is(value))
    }

    /// Adds one that is not there, while no other thread adds any.
    pub(crate) fn add(&self, hash: u64, value: T) {
        let slot = self.from(hash).find(|slot| slot.get().is_none());
        let slot = slot.expect("half of the slots stay empty");
        assert!(slot.set(value).is_ok(), "only one thread adds at a time");
    }

    /// The slots in the order in which this hash takes them.
    #[inline]
    fn from(&self, hash: u64) -> impl Iterator<Item = &OnceLock<T>> {
        let (from, mask) = (hash as usize, self.slots.len() - 1);
        (0..self.slots.len()).map(move |step| &self.slots[from.wrapping_add(step) & mask])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(OnceLock::get)
    }
}
