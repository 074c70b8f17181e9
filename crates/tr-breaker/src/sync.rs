//! What the models exchange for loom's.
pub(crate) use std::sync::{
    OnceLock,
    atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};
