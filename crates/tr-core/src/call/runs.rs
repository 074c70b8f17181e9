//! Counts the executions of a tool for one call: the adapter adds, the envelope's `attempts` tells.
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Counts how often a tool was run for a call. A clone is the same counter, so all copies of a call
/// that carry it count together, whatever is changed in them.
#[derive(Clone, Debug, Default)]
pub struct Runs(Arc<AtomicU32>);

impl Runs {
    /// Counts one execution. Called as the tool starts.
    pub fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes one back: a service that calls tools knows no tool of this name.
    pub fn take_back(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many executions were counted.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
