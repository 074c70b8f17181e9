//! One table of records behind its lock.
use super::{budget::Budget, table::Table};
use crate::clock::Clock;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tr_core::canonical::FingerprintKey;

/// What all shards of a store share, read only.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) clock: Clock,
    pub(crate) fingerprints: FingerprintKey,
    pub(crate) max_waiters: usize,
    pub(crate) budget: Arc<Budget>,
}

/// A part of the records. Calls in different shards share no lock. Claims and waiters hold a
/// reference to their shard, so its reference count is on the cache line of its lock.
pub(crate) struct Shard<V> {
    table: Mutex<Table<V>>,
    pub(crate) common: Arc<Common>,
}

impl<V> Shard<V> {
    pub(crate) fn new(common: Arc<Common>, quota: usize, seed: u64) -> Self {
        Self { table: Mutex::new(Table::new(quota, seed)), common }
    }

    /// A panic under the lock (in a `clone` of what a codec stores) leaves the table consistent.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table<V>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> fmt::Debug for Shard<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard").finish_non_exhaustive()
    }
}
