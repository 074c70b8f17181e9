//! Waits for another process's lock.
use std::{
    thread,
    time::{Duration, Instant},
};

/// The first pause is at most this long; the bound doubles with each pause.
const FIRST: Duration = Duration::from_micros(250);

/// The longest pause. A busy writer frees its lock for about 50 µs between two commits, so a waiter
/// has to try often.
const LONGEST: Duration = Duration::from_millis(4);

/// Random pauses with a growing bound, until a time limit.
#[derive(Debug)]
pub(crate) struct Backoff {
    since: Instant,
    limit: Duration,
    ceiling: Duration,
}

impl Backoff {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { since: now(), limit, ceiling: FIRST }
    }

    /// Waits for one pause; `false` at once if the time is up.
    pub(crate) fn wait(&mut self) -> bool {
        if self.since.elapsed() >= self.limit {
            return false;
        }
        let ceiling = u64::try_from(self.ceiling.as_nanos()).unwrap_or(u64::MAX);
        thread::park_timeout(Duration::from_nanos(fastrand::u64(0..=ceiling)));
        self.ceiling = (self.ceiling * 2).min(LONGEST);
        true
    }
}

/// The time, on threads outside any runtime.
#[expect(clippy::disallowed_methods, reason = "no tokio here, and no clock that could be paused")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
