//! Timers that need not be set.
use std::future::pending;
use tokio::time::{Instant, sleep_until};

/// Waits until then, or for ever.
pub(crate) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}
