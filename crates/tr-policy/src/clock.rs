//! Wall time, where a record or an HTTP date needs it.
use crate::internal::millis;
use std::{
    fmt::{self, Debug},
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
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, millis)
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

/// A wall time as RFC 3339 has it, in UTC with milliseconds: `2026-02-21T11:20:00.000Z`.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> impl fmt::Display {
    Rfc3339(unix_ms)
}

struct Rfc3339(u64);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: u64 = 24 * 60 * 60 * 1000;
        let (days, ms) = (self.0 / DAY, self.0 % DAY);
        // Eras of 400 years that begin on 1 March, so that leap days come last.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        let (year, ms) = (era * 400 + year, ms % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn dates_are_right_around_leap_days() {
        for (unix_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_771_672_800_000, "2026-02-21T11:20:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(unix_ms).to_string(), text);
        }
    }
}
