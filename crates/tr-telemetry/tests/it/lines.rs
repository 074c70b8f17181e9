//! The events as JSON.
use std::sync::Arc;
use tr_core::SetClock;
use tr_telemetry::JsonLines;
use tr_testkit::logs::Logs;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::{prelude::*, registry};

pub(crate) struct Lines(Logs);

impl Lines {
    /// Listens on this thread until the guard goes.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let clock = Arc::new(SetClock::at(1_771_672_800_000));
        let lines = |logs| registry().with(JsonLines::new(logs).clock(clock));
        let (logs, guard) = Logs::listen(lines);
        (Self(logs), guard)
    }

    pub(crate) fn text(&self) -> String {
        self.0.text()
    }

    pub(crate) fn events(&self) -> Vec<serde_json::Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
