//! Wall time, where a record or an HTTP date needs it.
use std::{
    fmt::Debug,
    sync::atomic::{AtomicU64, Ordering},
};

/// Tells the wall time. Durations and deadlines never use it: it jumps.
pub trait WallClock: Debug + Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn unix_ms(&self) -> u64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    fn unix_ms(&self) -> u64 {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands where it is put.
#[derive(Debug, Default)]
pub struct SetClock(AtomicU64);

impl SetClock {
    /// Stands at `unix_ms`.
    #[must_use]
    pub const fn at(unix_ms: u64) -> Self {
        Self(AtomicU64::new(unix_ms))
    }

    /// Puts it at `unix_ms`.
    pub fn set(&self, unix_ms: u64) {
        self.0.store(unix_ms, Ordering::Relaxed);
    }
}

impl WallClock for SetClock {
    fn unix_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
