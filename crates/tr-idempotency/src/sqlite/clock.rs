//! The clock of the records.
use crate::clock::millis;
use tokio::time::Instant;
use tr_core::{SystemClock, WallClock};

/// The machine's time, read once and then advanced by a monotonic clock: it does not jump when the
/// machine's clock does.
#[derive(Debug)]
pub(super) struct SteadyClock {
    made: Instant,
    made_unix_ms: u64,
}

impl SteadyClock {
    pub(super) fn new() -> Self {
        Self { made: Instant::now(), made_unix_ms: SystemClock.unix_ms() }
    }
}

impl WallClock for SteadyClock {
    fn unix_ms(&self) -> u64 {
        self.made_unix_ms.saturating_add(millis(self.made.elapsed()))
    }
}
