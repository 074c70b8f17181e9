//! A store in memory: the reference for other stores, and a way to test several processes in one.
use super::{
    Change, Changed, ClaimRequest, Claimed, Listing, Query, RecordStore, Seen, StoreFuture, Stored,
};
use crate::{clock::SteadyClock, protocol::Millis};
use std::{
    collections::HashMap,
    future::ready,
    pin::pin,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;
use tr_core::{WallClock, canonical::Key, internal::lock};

/// The default capacity.
const CAPACITY: usize = 1 << 20;

/// The most records that one sweep deletes.
const SWEPT: usize = 10_000;

/// Records in memory, behind the trait that durable stores implement.
///
/// # When to use
///
/// In tests, where each layer over a clone of one `Memory` stands for a process; and as an example
/// for a store of your own. To keep records in this process only, give the layer no store: that is
/// many times faster.
///
/// Its clock is tokio's, so tests can pause it. At capacity (a million records) the oldest settled
/// record is evicted; if none is settled, the store is full. A clone shares the records.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    changed: Notify,
    capacity: usize,
    clock: SteadyClock,
}

#[derive(Debug, Default)]
struct Table {
    records: HashMap<Key, Stored>,
    /// The epoch of the last claim or settlement, of any key.
    epoch: u64,
    mark: Vec<u8>,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(CAPACITY)
    }

    /// An empty store with this capacity.
    #[must_use]
    pub fn with_capacity(records: usize) -> Self {
        Self(Arc::new(Shared {
            table: Mutex::default(),
            changed: Notify::new(),
            capacity: records,
            clock: SteadyClock::new(),
        }))
    }

    fn now(&self) -> Millis {
        self.0.clock.unix_ms()
    }

    /// Changes the record of this key as it stands now, and wakes the watchers.
    fn applied(&self, key: &Key, change: Change<'_>) -> bool {
        let now = self.now();
        let mut table = lock(&self.0.table);
        let epoch = table.epoch + 1;
        let Some(Stored { record, .. }) = table.get(key, now) else { return false };
        let changed = change.apply(record, epoch, now);
        let last = record.token.epoch;
        match changed {
            Changed::Not(is_done) => return is_done,
            Changed::Written => table.epoch = table.epoch.max(last),
            Changed::Deleted => drop(table.records.remove(key)),
        }
        self.0.changed.notify_waiters();
        true
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// The record as it stands; an expired one is deleted.
    fn get(&mut self, key: &Key, now: Millis) -> Option<&mut Stored> {
        if self.records.get_mut(key)?.record.expire(now) {
            self.records.remove(key);
            return None;
        }
        self.records.get_mut(key)
    }

    /// Evicts a record if the table is full; `false` if it stays full.
    fn room(&mut self, capacity: usize) -> bool {
        if self.records.len() < capacity {
            return true;
        }
        let free = self.records.values().filter(|stored| !stored.record.is_pinned());
        let oldest = free.min_by_key(|stored| stored.record.changed_at).map(|stored| stored.key);
        oldest.is_some_and(|key| self.records.remove(&key).is_some())
    }

    fn selected<'t>(&'t self, query: &'t Query, now: Millis) -> impl Iterator<Item = Stored> + 't {
        let standing = self.records.values().filter_map(move |stored| stored.clone().at(now));
        standing.filter(|stored| query.matches(stored))
    }
}

/// A future that is ready.
fn done<'s, T: Send + 's>(value: T) -> StoreFuture<'s, T> {
    Box::pin(ready(Ok(value)))
}

impl RecordStore for Memory {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        let now = self.now();
        let mut table = lock(&self.0.table);
        let mut found = table.get(&claim.key, now).cloned();
        if found.is_none() && !table.room(self.0.capacity) {
            return done(Claimed::Full);
        }
        let claimed = claim.apply(&mut found, table.epoch + 1, now);
        if let (Claimed::Run(_), Some(stored)) = (&claimed, found) {
            table.epoch = table.epoch.max(stored.record.token.epoch);
            table.records.insert(claim.key, stored);
            self.0.changed.notify_waiters();
        }
        done(claimed)
    }

    fn change<'s>(&'s self, key: &'s Key, change: Change<'s>) -> StoreFuture<'s, bool> {
        done(self.applied(key, change))
    }

    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        let now = self.now();
        let found = lock(&self.0.table).get(key, now).cloned();
        done(found.and_then(|stored| stored.at(now)))
    }

    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            loop {
                let mut changed = pin!(self.0.changed.notified());
                changed.as_mut().enable();
                let now = self.now();
                let same = lock(&self.0.table).get(key, now).is_some_and(|it| it.seen() == seen);
                if !same {
                    return Ok(());
                }
                changed.await;
            }
        })
    }

    fn list<'s>(&'s self, query: &'s Query, limit: usize, _: bool) -> StoreFuture<'s, Listing> {
        let records = lock(&self.0.table).selected(query, self.now()).take(limit).collect();
        done(Listing { records, unreadable: Vec::new() })
    }

    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        done(lock(&self.0.table).selected(query, self.now()).count() as u64)
    }

    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        let mut table = lock(&self.0.table);
        let free = |stored: &Stored| !stored.record.is_pinned();
        let meant: Vec<_> =
            table.selected(query, self.now()).filter(free).map(|stored| stored.key).collect();
        for key in &meant {
            table.records.remove(key);
        }
        done(meant.len() as u64)
    }

    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        let now = self.now();
        let mut table = lock(&self.0.table);
        let is_gone = table.get(key, now).is_some() && table.records.remove(key).is_some();
        self.0.changed.notify_waiters();
        done(is_gone)
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        let now = self.now();
        let mut table = lock(&self.0.table);
        let over = table.records.values().filter(|stored| stored.record.over_at() <= now);
        let keys: Vec<_> = over.map(|stored| stored.key).take(SWEPT).collect();
        for key in &keys {
            table.records.remove(key);
        }
        done(keys.len() as u64)
    }

    fn mark<'s>(&'s self, from: &'s [u8], to: &'s [u8]) -> StoreFuture<'s, Vec<u8>> {
        let mark = &mut lock(&self.0.table).mark;
        if mark == from {
            to.clone_into(mark);
        }
        done(mark.clone())
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        done(vec!["records are lost when this process ends: give the layer a durable store".into()])
    }
}
