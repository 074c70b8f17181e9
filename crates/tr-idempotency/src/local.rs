//! The records of this process: the lease protocol over bounded tables.
mod apply;
pub(crate) mod budget;
pub(crate) mod claim;
mod drivers;
pub(crate) mod notes;
pub(crate) mod slot_pool;
mod slots;
pub(crate) mod table;
#[cfg(test)]
mod walk;
mod weigh;

use self::{
    claim::{Claim, Delivery, Shard, Waiter},
    notes::Notes,
    slot_pool::Cell,
    slots::hash,
    table::{Common, Entry, LocalClaim, Table, Task},
};
use crate::{
    end::{Refusal, State},
    protocol::{Millis, Ttls},
    record::DedupeRecord,
};
use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, MutexGuard},
};
use tr_core::{DedupeKey, Replay, canonical::Key};

/// The most shards.
const SHARDS: usize = 1024;

/// The least records of a shard, where there are several.
const RECORDS_PER_SHARD: usize = 64;

/// Bounded records in memory. Calls in flight and mutating calls of unknown outcome are never
/// evicted: if there is nothing else, the store is full.
pub(crate) struct Store<V> {
    shards: Box<[Arc<Shard<V>>]>,
    pub(crate) common: Arc<Common>,
}

impl<V> Store<V> {
    pub(crate) fn new(capacity: usize, common: Common) -> Self {
        let common = Arc::new(common);
        let shards = (capacity / RECORDS_PER_SHARD).clamp(1, SHARDS);
        let shards = 1 << shards.ilog2();
        let quota = |shard| capacity / shards + usize::from(shard < capacity % shards);
        let seed = RandomState::new().hash_one(capacity);
        let shards = (0..shards)
            .map(|shard| Arc::new(Shard::new(common.clone(), quota(shard), seed)))
            .collect();
        Self { shards, common }
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = &Arc<Shard<V>>> {
        self.shards.iter()
    }

    /// The middle bits: tables use the low and the highest bits of the hash.
    #[inline]
    fn index(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.shards.len() - 1)
    }

    pub(crate) fn shard(&self, key: &Key) -> &Arc<Shard<V>> {
        &self.shards[self.index(hash(key))]
    }

    /// A shard for calls without a key, by stripe, so that threads of other stripes do not contend.
    pub(crate) fn of_stripe(&self, stripe: usize) -> &Arc<Shard<V>> {
        &self.shards[stripe % self.shards.len()]
    }

    pub(crate) fn record(&self, key: &Key) -> Option<DedupeRecord> {
        let table = self.shard(key).lock();
        let (entry, notes) = table.get(key)?;
        Some(self.shown(entry, notes))
    }

    /// The records that `wanted` selects, in no order. Locks one shard after the other.
    pub(crate) fn select(
        &self,
        wanted: impl Fn(&Entry<V, Delivery<V>>, &Notes) -> bool,
    ) -> Vec<DedupeRecord> {
        let mut found = Vec::new();
        for shard in self.shards() {
            let table = shard.lock();
            let those = table.slots().filter(|(entry, notes)| wanted(entry, notes));
            found.extend(those.map(|(entry, notes)| self.shown(entry, notes)));
        }
        found
    }

    /// The record as it stands now.
    fn shown(&self, entry: &Entry<V, Delivery<V>>, notes: &Notes) -> DedupeRecord {
        let failure = entry.record.state.recorded();
        let unix = |at| self.common.clock.unix_ms(at);
        let (record, earlier) = (&entry.record, &entry.earlier);
        DedupeRecord::new(&entry.key, record, &notes.shown(), earlier, failure, None, unix)
    }

    /// Records how a call of unknown outcome ended, with a response of `size` bytes; of this epoch
    /// only, if it is given. Returns whether there was such a call.
    pub(crate) fn settle(
        &self,
        key: &Key,
        of: Option<u64>,
        to: State<V>,
        size: usize,
        ttls: &Ttls,
    ) -> bool {
        let (now, ttl) = (self.common.clock.exactly(), ttls.of(&to));
        let mut table = self.shard(key).lock();
        let found = table.get(key).map(|(entry, _)| entry.record.token.epoch);
        let is_meant = found.is_some_and(|epoch| of.is_none_or(|of| of == epoch));
        let Some(at) = table.find(key).filter(|_| is_meant) else { return false };
        let garbage = table.settle(at, to, now, ttl);
        let is_settled = garbage.is_ok();
        let budget = &self.common.budget;
        let gone = is_settled.then(|| table.weigh(at, None, budget.reserve(size), budget));
        drop(table);
        drop((garbage, gone));
        is_settled
    }

    /// Moves the quota of one record from another shard to shard `to`: the capacity is that of the
    /// whole store.
    fn borrow_room(&self, to: usize, now: Millis) -> bool {
        let others = (1..self.shards.len()).map(|by| (to + by) % self.shards.len());
        let lent = others.into_iter().find_map(|from| self.shards[from].lock().lend(now));
        let Some(evicted) = lent else { return false };
        self.shards[to].lock().borrow();
        drop(evicted);
        true
    }

    /// Finds the record of a key, and keeps its shard locked.
    #[inline]
    pub(crate) fn ask(&self, key: &Key) -> Lookup<'_, V> {
        let hash = hash(key);
        let table = self.shards[self.index(hash)].lock();
        let found = table.find_hashed(hash, key);
        Lookup { store: self, hash, table, found }
    }
}

/// A key that was looked up, and its locked shard.
pub(crate) struct Lookup<'s, V> {
    store: &'s Store<V>,
    hash: u64,
    table: MutexGuard<'s, Table<V, Delivery<V>>>,
    found: Option<usize>,
}

/// A claim, and perhaps a recycled cell for its run.
type Granted<V, D> = (Claim<V>, Option<Cell<D>>);

/// What a call has to do after its claim in these tables.
pub(crate) type CallTask<V, D> = Task<V, Granted<V, D>, Waiter<V>>;

impl<'s, V: Clone> Lookup<'s, V> {
    /// The response, if the call has succeeded.
    #[inline]
    pub(crate) fn hit(&mut self, id: &DedupeKey, now: Millis) -> Option<(V, Replay)> {
        self.table.hit(self.found?, id, now, &self.store.common)
    }

    /// The claim, if there is no record and the shard is not full.
    #[inline]
    pub(crate) fn open<D: Send + 'static>(
        mut self,
        local: &LocalClaim<'_>,
        note: impl FnOnce(&mut Notes),
    ) -> Result<Granted<V, D>, Self> {
        if self.found.is_some() || !self.table.has_room() {
            return Err(self);
        }
        let (at, token, garbage) = self.table.open(self.hash, local, note);
        let cell = self.table.pool.take();
        drop(self.table);
        let shard = &self.store.shards[self.store.index(self.hash)];
        // Before the garbage is dropped, which runs foreign code: if that panics, the claim is
        // released.
        let claim = Claim::new(shard.clone(), at, token, local.terms());
        drop(garbage);
        Ok((claim, cell))
    }

    /// Claims the call, or returns what else to do.
    pub(crate) fn claim<D: Send + 'static>(
        self,
        local: &LocalClaim<'_>,
        note: impl Fn(&mut Notes) + Copy,
    ) -> CallTask<V, D> {
        let Self { store, hash, mut table, found } = self;
        let index = store.index(hash);
        let Some(at) = found else {
            drop(table);
            if !store.borrow_room(index, local.now) {
                return Task::Refuse(Refusal::Full(None));
            }
            return match store.ask(&local.id.key).open(local, note) {
                Ok(granted) => Task::Run(granted),
                Err(asked) => asked.claim(local, note),
            };
        };
        let (found, garbage) = table.claim(at, local, &store.common, note);
        let is_claimed = matches!(found, Task::Run(_));
        let cell = if is_claimed { table.pool.take() } else { None };
        drop(table);
        let shard = &store.shards[index];
        // Before the garbage is dropped, as above.
        let task = match found {
            Task::Run(token) => {
                Task::Run((Claim::new(shard.clone(), at, token, local.terms()), cell))
            }
            Task::Wait(wait, replay) => {
                let (shard, key, once) = (shard.clone(), local.id.key, local.cut_off);
                Task::Wait(Waiter { wait, shard, key, once }, replay)
            }
            Task::Replay(answer, replay, state) => Task::Replay(answer, replay, state),
            Task::Unrecorded => Task::Unrecorded,
            Task::Refuse(refusal) => Task::Refuse(refusal),
        };
        drop(garbage);
        task
    }
}
