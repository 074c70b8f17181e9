//! Calls that have ended in this process, with an end that the store has not recorded.
use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tr_core::{canonical::Key, internal::lock};

/// The most keys that are kept.
const MOST: usize = 10_000;

/// The keys of these calls, until the store has recorded the end.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded {
    keys: Mutex<HashSet<Key>>,
    /// The number of keys, so that no lock is taken while there are none.
    count: AtomicUsize,
}

impl Unrecorded {
    /// Adds a call whose end the store has not recorded.
    #[cold]
    pub(super) fn add(&self, key: Key) {
        let mut keys = lock(&self.keys);
        if keys.len() < MOST {
            keys.insert(key);
        }
        self.count.store(keys.len(), Relaxed);
    }

    /// Removes a call whose end is recorded.
    pub(super) fn remove(&self, key: &Key) {
        if self.count.load(Relaxed) > 0 {
            let mut keys = lock(&self.keys);
            keys.remove(key);
            self.count.store(keys.len(), Relaxed);
        }
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.count.load(Relaxed) > 0 && lock(&self.keys).contains(key)
    }
}
