//! A bounded table: rows found by key, evicted by the clock algorithm.
use super::{
    notes::Notes,
    table::{Entry, Slot, Table},
};
use crate::{end::State, protocol::Millis};
use std::{
    hash::{BuildHasher as _, RandomState},
    mem,
    sync::LazyLock,
};
use tr_core::canonical::Key;

impl<V, N> Table<V, N> {
    pub(crate) fn find(&self, key: &Key) -> Option<usize> {
        self.find_hashed(hash(key), key)
    }

    #[inline]
    pub(crate) fn find_hashed(&self, hash: u64, key: &Key) -> Option<usize> {
        let is_it = |&at: &u32| self.slots[at as usize].is(key);
        self.places.find(hash, is_it).map(|&at| at as usize)
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = (&Entry<V, N>, &Notes)> {
        self.slots.iter().filter_map(|slot| Some((slot.entry.as_ref()?, &slot.notes)))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<(&Entry<V, N>, &Notes)> {
        let slot = &self.slots[self.find(key)?];
        Some((slot.entry.as_ref()?, &slot.notes))
    }

    pub(crate) const fn len(&self) -> usize {
        self.live
    }

    /// Changes the record at `at`, and updates the count of those that may be evicted.
    #[inline]
    pub(super) fn change<T>(&mut self, at: usize, change: impl FnOnce(&mut Entry<V, N>) -> T) -> T {
        let entry = self.slots[at].entry.as_mut().expect("a record lies here");
        let before = entry.record.is_pinned();
        let result = change(entry);
        match (before, entry.record.is_pinned()) {
            (true, false) => self.settled += 1,
            (false, true) => self.settled -= 1,
            _ => {}
        }
        result
    }

    /// Keeps a new record, if the table [is not full](Self::has_room): its slot, and the state that was
    /// evicted for it.
    #[inline]
    pub(super) fn put(&mut self, now: Millis, new: Entry<V, N>) -> (usize, Option<State<V>>) {
        let hash = new.hash;
        let going = if self.live < self.quota { None } else { self.next_to_go(now) };
        let Some(at) = going else {
            let swept = self.sweep_one(now);
            let at = self.free_slot();
            self.slots[at].entry = Some(new);
            self.live += 1;
            self.list(at, hash);
            return (at, swept);
        };
        self.unlist(at);
        let entry = self.slots[at].entry.as_mut().expect("a record lies here");
        self.settled -= usize::from(!entry.record.is_pinned());
        let gone = mem::replace(entry, new);
        self.list(at, hash);
        (at, Some(gone.record.state))
    }

    fn free_slot(&mut self) -> usize {
        if let Some(at) = self.free.pop() {
            return at as usize;
        }
        self.slots.push(Slot { entry: None, notes: Notes::default() });
        self.slots.len() - 1
    }

    #[inline]
    fn list(&mut self, at: usize, hash: u64) {
        // Twice the needed size: tombstones are then cleared in place, where a fuller table would
        // move to a larger one.
        if self.places.num_buckets() < 3 * self.live {
            self.grow();
        }
        let slots = &self.slots;
        self.places.insert_unique(hash, number(at), |&at| slots[at as usize].hash());
    }

    #[cold]
    fn grow(&mut self) {
        let slots = &self.slots;
        self.places.reserve(2 * self.live, |&at| slots[at as usize].hash());
    }

    #[inline]
    fn unlist(&mut self, at: usize) {
        let hash = self.slots[at].hash();
        if let Ok(place) = self.places.find_entry(hash, |&it| it as usize == at) {
            place.remove();
        }
    }

    /// Deletes the record at `at`, whatever its state. The caller serves its waiters.
    pub(crate) fn forget(&mut self, at: usize) -> Option<State<V>> {
        self.slots[at].entry.as_ref()?;
        self.unlist(at);
        let entry = self.slots[at].entry.take()?;
        self.live -= 1;
        self.settled -= usize::from(!entry.record.is_pinned());
        self.free.push(number(at));
        Some(entry.record.state)
    }

    /// Whether a record can be added, if need be by evicting another.
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.live < self.quota || self.settled > 0
    }

    /// The next settled record that was not used since the cursor last passed it, or the next
    /// expired one; `None` if nothing is settled.
    #[inline]
    fn next_to_go(&mut self, now: Millis) -> Option<usize> {
        if self.settled == 0 {
            return None;
        }
        loop {
            let at = advance(&mut self.evict_cursor, self.slots.len());
            let Some(entry) = &mut self.slots[at].entry else { continue };
            let is_spare = !entry.record.is_pinned() && !mem::take(&mut entry.touched);
            if is_spare || entry.is_over(now) {
                return Some(at);
            }
        }
    }

    /// Looks at one more record and deletes it if it has expired.
    fn sweep_one(&mut self, now: Millis) -> Option<State<V>> {
        let at = advance(&mut self.sweep_cursor, self.slots.len());
        let over = self.slots.get(at)?.entry.as_ref()?.is_over(now);
        if over { self.forget(at) } else { None }
    }

    /// Deletes every expired record.
    pub(crate) fn sweep(&mut self, now: Millis) -> Vec<State<V>> {
        self.forget_all(|entry, _| entry.is_over(now))
    }

    /// Deletes every record that the predicate selects.
    pub(crate) fn forget_all(
        &mut self,
        is_to_go: impl Fn(&Entry<V, N>, &Notes) -> bool,
    ) -> Vec<State<V>> {
        let going =
            |slot: &Slot<V, N>| slot.entry.as_ref().is_some_and(|it| is_to_go(it, &slot.notes));
        let places: Vec<_> = (0..self.slots.len()).filter(|&at| going(&self.slots[at])).collect();
        places.into_iter().filter_map(|at| self.forget(at)).collect()
    }

    /// Gives the quota of one record to another shard, if possible; returns the evicted state.
    pub(crate) fn lend(&mut self, now: Millis) -> Option<Option<State<V>>> {
        let evicted = if self.live < self.quota {
            None
        } else {
            let at = self.next_to_go(now)?;
            Some(self.forget(at)?)
        };
        self.quota -= 1;
        Some(evicted)
    }

    pub(crate) const fn borrow(&mut self) {
        self.quota += 1;
    }
}

/// Advances the cursor around `slots` slots, and returns where it was.
fn advance(hand: &mut usize, slots: usize) -> usize {
    let at = *hand;
    *hand = if at + 1 < slots { at + 1 } else { 0 };
    at
}

/// A slot number as tables keep it.
fn number(at: usize) -> u32 {
    u32::try_from(at).expect("the builder bounds the capacity")
}

/// Drawn once per process, so that clients that choose keys cannot choose their shards and slots.
static SECRET: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("places"));

/// All bits of a key, mixed with a secret. Keys are hashes already.
#[inline]
pub(crate) fn hash(key: &Key) -> u64 {
    hash_with(*SECRET, key)
}

#[inline]
fn hash_with(secret: u64, key: &Key) -> u64 {
    let (words, _) = key.as_bytes().as_chunks::<8>();
    let mix = |hash: u64, word: &[u8; 8]| {
        (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let hash = words.iter().fold(secret, mix);
    hash ^ (hash >> 32)
}

impl<V, N> Slot<V, N> {
    fn is(&self, key: &Key) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.key == *key)
    }

    fn hash(&self) -> u64 {
        self.entry.as_ref().map_or(0, |entry| entry.hash)
    }
}

#[cfg(test)]
mod tests;
