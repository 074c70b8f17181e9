//! The events as JSON.
use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};
use tr_core::SetClock;
use tr_telemetry::JsonLines;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::prelude::*;

#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Listens on this thread until the guard goes.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let clock = Arc::new(SetClock::at(1_771_672_800_000));
        let layer = JsonLines::new(lines.clone()).clock(clock);
        let guard = tracing_subscriber::registry().with(layer).set_default();
        (lines, guard)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    pub(crate) fn events(&self) -> Vec<serde_json::Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
