//! The one place where the time is read.
use std::time::Instant;

/// Monotonic time: tokio's, so that tests can pause it.
#[inline]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
