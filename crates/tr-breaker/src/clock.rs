//! The one place where the time is read.
use std::time::{Duration, Instant};
use tr_core::CoarseInstant;

/// Monotonic time: tokio's, so that tests can pause it.
#[inline]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time in a word.
#[inline]
pub(crate) fn stamp() -> CoarseInstant {
    CoarseInstant::at(now())
}

/// Wraps after 584 years.
#[inline]
pub(crate) const fn in_nanos(duration: Duration) -> u64 {
    duration.as_secs().wrapping_mul(1_000_000_000).wrapping_add(duration.subsec_nanos() as u64)
}
