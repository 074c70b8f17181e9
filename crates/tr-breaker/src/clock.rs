//! The one place where the time is read.
use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

/// Monotonic time: tokio's, so that tests can pause it.
#[inline]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// From when on times are told in words: long enough ago for a clock to go back a little. By the
/// process's own clock, since one that a test has put forward would leave the others behind.
#[expect(clippy::disallowed_methods, reason = "an instant to count from; no time passes here")]
static ZERO: LazyLock<Instant> = LazyLock::new(|| {
    let now = Instant::now();
    now.checked_sub(Duration::from_secs(24 * 60 * 60)).unwrap_or(now)
});

/// The time in a word.
#[inline]
pub(crate) fn nanos(at: Instant) -> u64 {
    in_nanos(at.saturating_duration_since(*ZERO))
}

/// The time that a word tells.
pub(crate) fn instant(nanos: u64) -> Instant {
    *ZERO + Duration::from_nanos(nanos)
}

/// Wraps after 584 years.
#[inline]
pub(crate) const fn in_nanos(duration: Duration) -> u64 {
    duration.as_secs().wrapping_mul(1_000_000_000).wrapping_add(duration.subsec_nanos() as u64)
}
