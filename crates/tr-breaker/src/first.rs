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
        for step in 0..self.slots.len() {
            // Each slot is read once: an empty one may be filled, with another, by the time of a second look.
            let value = self.slot(hash, step).get()?;
            if is(value) {
                return Some(value);
            }
        }
        None
    }

    /// Adds one that is not there, while no other thread adds any.
    pub(crate) fn add(&self, hash: u64, value: T) {
        let mut slots = (0..self.slots.len()).map(|step| self.slot(hash, step));
        let slot = slots.find(|slot| slot.get().is_none()).expect("half of the slots stay empty");
        assert!(slot.set(value).is_ok(), "only one thread adds at a time");
    }

    /// The slot that this hash takes after so many others.
    #[inline]
    fn slot(&self, hash: u64, step: usize) -> &OnceLock<T> {
        &self.slots[(hash as usize).wrapping_add(step) & (self.slots.len() - 1)]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(OnceLock::get)
    }
}
