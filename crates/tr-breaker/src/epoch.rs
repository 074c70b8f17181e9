//! The same moment on two clocks.
use std::time::{Duration, Instant};

/// The same time on the monotonic clock and on the wall clock, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    pub(crate) now: Instant,
    pub(crate) unix_ms: u64,
}

impl Epoch {
    /// The wall time of a moment that is past.
    pub(crate) fn wall(self, past: Instant) -> u64 {
        self.unix_ms.saturating_sub(millis(self.now.saturating_duration_since(past)))
    }

    /// The wall time that long after now.
    pub(crate) fn wall_after(self, left: Duration) -> u64 {
        self.unix_ms.saturating_add(millis(left))
    }

    /// The moment of a wall time; now, if the wall clock says that it is still to come. `None` if
    /// it is longer ago than this clock can tell.
    pub(crate) fn past(self, unix_ms: u64) -> Option<Instant> {
        self.now.checked_sub(Duration::from_millis(self.unix_ms.saturating_sub(unix_ms)))
    }

    /// Until a wall time; nothing, if it is past.
    pub(crate) fn until(self, unix_ms: u64) -> Duration {
        Duration::from_millis(unix_ms.saturating_sub(self.unix_ms))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
