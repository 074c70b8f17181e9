//! How often a tool was run for a call.
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Counts how often a tool was run for a call. A clone is the same counter, so all copies of a call
/// that carry it count together, whatever is changed in them.
#[derive(Clone, Debug, Default)]
pub struct Runs(Arc<AtomicU32>);

impl Runs {
    /// The tool is being run.
    pub fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
