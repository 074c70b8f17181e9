//! What the runs of a tool gather for a caller that takes no chunks.
use crate::chunks::Chunks;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, Ordering},
};

/// The chunks of each run that has asked for a sink and has not ended.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    begun: AtomicU32,
    runs: Mutex<Vec<(u32, Chunks)>>,
}

impl Gathering {
    pub(super) const fn new() -> Self {
        Self { begun: AtomicU32::new(0), runs: Mutex::new(Vec::new()) }
    }

    /// The number of a new run.
    pub(super) fn begin(&self) -> u32 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// All sinks of a run write to the same.
    pub(super) fn of(&self, run: u32) -> Chunks {
        let mut runs = self.runs();
        if let Some((_, chunks)) = runs.iter().find(|(number, _)| *number == run) {
            return chunks.clone();
        }
        let chunks = Chunks::gathering();
        runs.push((run, chunks.clone()));
        chunks
    }

    /// `None` if the run asked for no sink.
    pub(super) fn end(&self, run: u32) -> Option<Chunks> {
        let mut runs = self.runs();
        let at = runs.iter().position(|(number, _)| *number == run)?;
        Some(runs.swap_remove(at).1)
    }

    fn runs(&self) -> MutexGuard<'_, Vec<(u32, Chunks)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
