//! Calls that have ended in this process, and whose end the store does not have.
use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tr_core::canonical::Key;

/// More are not remembered.
const MOST: usize = 10_000;

/// Their keys, until the store has the end.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded {
    keys: Mutex<HashSet<Key>>,
    /// How many there are, so that nothing is locked while there are none.
    count: AtomicUsize,
}

impl Unrecorded {
    /// The store does not have the end of this call.
    #[cold]
    pub(super) fn add(&self, key: Key) {
        let mut keys = self.lock();
        if keys.len() < MOST {
            keys.insert(key);
        }
        self.count.store(keys.len(), Relaxed);
    }

    /// The store has it.
    pub(super) fn remove(&self, key: &Key) {
        if self.count.load(Relaxed) > 0 {
            let mut keys = self.lock();
            keys.remove(key);
            self.count.store(keys.len(), Relaxed);
        }
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.count.load(Relaxed) > 0 && self.lock().contains(key)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
