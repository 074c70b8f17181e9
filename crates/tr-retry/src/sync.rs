//! The atomics of the budget, which its model exchanges for loom's.
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
