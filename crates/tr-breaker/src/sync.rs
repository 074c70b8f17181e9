//! What the models exchange for loom's, and the guard of a lock also after a panic has poisoned it.
use std::sync::{LockResult, PoisonError};
pub(crate) use std::sync::{
    OnceLock,
    atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// The guard of a lock, poisoned or not. Poisoning can be ignored: no code of users runs under a
/// lock of this crate, and every critical section keeps its data consistent at each step.
#[inline]
pub(crate) fn ignore_poison<G>(lock: LockResult<G>) -> G {
    lock.unwrap_or_else(PoisonError::into_inner)
}
