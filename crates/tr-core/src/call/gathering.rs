//! What the runs of a tool gather for a caller that takes no chunks.
use crate::{chunks::Chunks, internal::lock};
use std::sync::{
    Mutex, OnceLock,
    atomic::{AtomicU32, Ordering},
};

/// The chunks of each run that has asked for a sink and has not ended.
#[derive(Debug)]
pub(super) struct Gathering {
    begun: AtomicU32,
    /// Made by the first sink: most tools ask for none.
    runs: OnceLock<Mutex<Vec<(u32, Chunks)>>>,
}

impl Gathering {
    pub(super) const fn new() -> Self {
        Self { begun: AtomicU32::new(0), runs: OnceLock::new() }
    }

    /// The number of a new run, from 1.
    #[inline]
    pub(super) fn begin(&self) -> u32 {
        self.begun.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// All sinks of a run write to the same.
    pub(super) fn of(&self, run: u32) -> Chunks {
        let mut runs = lock(self.runs.get_or_init(Mutex::default));
        if let Some((_, chunks)) = runs.iter().find(|(number, _)| *number == run) {
            return chunks.clone();
        }
        let chunks = Chunks::gathering();
        runs.push((run, chunks.clone()));
        chunks
    }

    /// `None` if the run asked for no sink.
    #[inline]
    pub(super) fn end(&self, run: u32) -> Option<Chunks> {
        let mut runs = lock(self.runs.get()?);
        let at = runs.iter().position(|(number, _)| *number == run)?;
        Some(runs.swap_remove(at).1)
    }
}
