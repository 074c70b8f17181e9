//! The primitives that loom replaces when it explores schedules.
#[cfg(tr_loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(tr_loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use std::sync::{LockResult, PoisonError};

/// Two suffice to show a race, and loom tries every order.
#[cfg(tr_loom)]
pub(crate) const STRIPES: usize = 2;
#[cfg(not(tr_loom))]
pub(crate) use tr_core::STRIPES;

/// The guard, also after a panic: no foreign code runs under a lock of this crate, and every
/// critical section leaves what it guards consistent at each step.
pub(crate) fn held<G>(lock: LockResult<G>) -> G {
    lock.unwrap_or_else(PoisonError::into_inner)
}
