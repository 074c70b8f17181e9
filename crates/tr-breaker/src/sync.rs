//! Locks that no panic poisons.
use std::sync::{LockResult, PoisonError};

/// The guard, also after a panic: no foreign code runs under a lock of this crate, and every
/// critical section leaves what it guards consistent at each step.
#[inline]
pub(crate) fn held<G>(lock: LockResult<G>) -> G {
    lock.unwrap_or_else(PoisonError::into_inner)
}
