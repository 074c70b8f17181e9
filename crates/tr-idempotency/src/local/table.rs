//! Records in memory: bounded, found by key, evicted by the clock algorithm.
use super::{
    budget::{Budget, Room},
    drivers::Drivers,
    entry::{Entry, New},
    notes::Notes,
    slot_pool::SlotPool,
};
use crate::{
    end::{Dropped, State},
    protocol::{Millis, Token},
};
use hashbrown::HashTable;
use std::{
    hash::{BuildHasher as _, RandomState},
    mem,
    sync::{Arc, LazyLock},
};
use tr_core::canonical::Key;

/// One shard's records.
#[derive(Debug)]
pub(crate) struct Table<V> {
    places: HashTable<u32>,
    pub(super) slots: Vec<Slot<V>>,
    free: Vec<u32>,
    /// Where eviction continues.
    evict_cursor: usize,
    /// Where sweeping continues.
    sweep_cursor: usize,
    /// The capacity of this shard.
    quota: usize,
    /// The number of records.
    live: usize,
    /// The number of records that may be evicted.
    pub(super) settled: usize,
    /// The epoch of the last claim.
    pub(super) epoch: u64,
    /// Makes this store's owners differ from other stores'.
    seed: u64,
    pub(crate) pool: SlotPool,
    pub(super) drivers: Drivers,
}

#[derive(Debug)]
pub(crate) struct Slot<V> {
    pub(crate) entry: Option<Entry<V>>,
    pub(crate) notes: Notes,
}

impl<V> Table<V> {
    pub(crate) fn new(quota: usize, seed: u64) -> Self {
        Self {
            places: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            evict_cursor: 0,
            sweep_cursor: 0,
            quota,
            live: 0,
            settled: 0,
            epoch: 0,
            seed,
            pool: SlotPool::default(),
            drivers: Drivers::default(),
        }
    }

    pub(crate) fn find(&self, key: &Key) -> Option<usize> {
        self.find_hashed(hash(key), key)
    }

    #[inline]
    pub(crate) fn find_hashed(&self, hash: u64, key: &Key) -> Option<usize> {
        let is_it = |&at: &u32| self.slots[at as usize].is(key);
        self.places.find(hash, is_it).map(|&at| at as usize)
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = (&Entry<V>, &Notes)> {
        self.slots.iter().filter_map(|slot| Some((slot.entry.as_ref()?, &slot.notes)))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<(&Entry<V>, &Notes)> {
        let slot = &self.slots[self.find(key)?];
        Some((slot.entry.as_ref()?, &slot.notes))
    }

    pub(crate) const fn len(&self) -> usize {
        self.live
    }

    /// Changes the record at `at`, and updates the count of those that may be evicted.
    #[inline]
    pub(crate) fn change<R>(&mut self, at: usize, change: impl FnOnce(&mut Entry<V>) -> R) -> R {
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

    /// The record at `at`, if this claim is in force.
    pub(super) fn held(&mut self, at: usize, token: Token) -> Option<&mut Entry<V>> {
        self.slots.get_mut(at)?.entry.as_mut().filter(|entry| entry.record.is_held_by(token))
    }

    /// The token of the next claim.
    pub(super) const fn next(&self) -> Token {
        let epoch = self.epoch + 1;
        Token { epoch, owner: self.seed.wrapping_add(epoch) }
    }

    /// Makes a record, if the table [is not full](Self::has_room): its slot, and the state that was
    /// evicted for it.
    #[inline]
    pub(super) fn put(&mut self, new: &New<'_>) -> (usize, Option<State<V>>) {
        let going = if self.live < self.quota { None } else { self.next_to_go(new.ask.now) };
        let Some(at) = going else {
            let swept = self.sweep_one(new.ask.now);
            let at = self.free_slot();
            self.slots[at].entry = Some(Entry::new(new));
            self.live += 1;
            self.list(at, new.hash);
            return (at, swept);
        };
        self.unlist(at);
        let entry = self.slots[at].entry.as_mut().expect("a record lies here");
        self.settled -= usize::from(!entry.record.is_pinned());
        let gone = entry.renew(new);
        self.list(at, new.hash);
        (at, Some(gone))
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

    /// Keeps the response of the ended run of `token` if the budget allows it. Returns what was
    /// dropped, and whether the response stays. The record itself stays in any case.
    #[cold]
    pub(super) fn weigh(
        &mut self,
        at: usize,
        token: Token,
        room: Room,
        budget: &Arc<Budget>,
    ) -> (Vec<Dropped<V>>, bool) {
        let mut gone = Vec::new();
        let is_it =
            |entry: &&mut Entry<V>| entry.record.token == token && entry.record.state.can_shrink();
        let slot = self.slots.get_mut(at).and_then(|slot| slot.entry.as_mut());
        if slot.filter(is_it).is_none() {
            return (gone, true);
        }
        let room = match room {
            Room::Full(bytes) => {
                self.make_room(at, bytes, &mut gone);
                budget.reserve(bytes)
            }
            room => room,
        };
        let entry = self.slots[at].entry.as_mut().expect("found");
        let stays = match room {
            Room::Fits(reserved) => {
                entry.reserved = reserved;
                true
            }
            Room::Full(_) | Room::TooLarge => {
                gone.extend(entry.record.state.shrink());
                false
            }
        };
        (gone, stays)
    }

    /// Like [`weigh`](Self::weigh), for a run that was settled by hand with a response of `size`
    /// bytes.
    pub(super) fn weigh_settled(
        &mut self,
        at: usize,
        size: usize,
        budget: &Arc<Budget>,
    ) -> Vec<Dropped<V>> {
        let token = self.slots.get(at).and_then(|slot| Some(slot.entry.as_ref()?.record.token));
        token.map_or_else(Vec::new, |token| self.weigh(at, token, budget.reserve(size), budget).0)
    }

    /// Drops the oldest responses of this shard until `bytes` are free, if it has that many.
    fn make_room(&mut self, but: usize, bytes: usize, gone: &mut Vec<Dropped<V>>) {
        let weight = |slot: &Slot<V>| {
            let entry = slot.entry.as_ref()?;
            Some((entry.record.changed_at, entry.reserved.as_ref()?.bytes()))
        };
        let slots = self.slots.iter().enumerate().filter(|(at, _)| *at != but);
        let mut all: Vec<_> = slots.filter_map(|(at, slot)| Some((weight(slot)?, at))).collect();
        // Dropping all would not be enough, so none is dropped.
        if all.iter().map(|((_, weight), _)| weight).sum::<usize>() < bytes {
            return;
        }
        all.sort_unstable();
        let mut freed = 0;
        for ((_, weight), at) in all {
            if freed >= bytes {
                return;
            }
            let entry = self.slots[at].entry.as_mut().expect("it has an answer");
            gone.extend(entry.record.state.shrink());
            entry.reserved = None;
            freed += weight;
        }
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
        is_to_go: impl Fn(&Entry<V>, &Notes) -> bool,
    ) -> Vec<State<V>> {
        let going =
            |slot: &Slot<V>| slot.entry.as_ref().is_some_and(|it| is_to_go(it, &slot.notes));
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

impl<V> Slot<V> {
    fn is(&self, key: &Key) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.key == *key)
    }

    fn hash(&self) -> u64 {
        self.entry.as_ref().map_or(0, |entry| entry.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tr_core::canonical::Digest;

    /// An attacker looks for keys that share a slot, without the process's secret.
    #[test]
    fn who_chooses_keys_does_not_choose_their_places() {
        const PLACES: u64 = 1 << 10;
        let keys = (0..200_000_u32)
            .map(|n| Key::from_bytes(*Digest::of_bytes(n.to_le_bytes()).as_bytes()));
        let of_one_place = keys.filter(|key| hash_with(1, key) % PLACES == 7);
        let of_one_place: Vec<_> = of_one_place.take(128).collect();
        assert_eq!(of_one_place.len(), 128);
        for secret in [2, 3, u64::MAX] {
            let places = of_one_place.iter().map(|key| hash_with(secret, key) % PLACES);
            let places: HashSet<_> = places.collect();
            assert!(places.len() > 100, "{} places with the secret {secret}", places.len());
        }
        assert_eq!(hash(&of_one_place[0]), hash_with(*SECRET, &of_one_place[0]));
    }
}
