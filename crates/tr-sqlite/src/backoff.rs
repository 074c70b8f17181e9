//! Waits for another process's lock.
use crate::error::{ErrorKind, Result};
use std::{
    thread,
    time::{Duration, Instant},
};

/// The first pause is at most this long; the bound doubles with each pause.
const FIRST: Duration = Duration::from_micros(250);

/// The longest pause. A busy writer frees its lock for about 50 µs between two commits, so a waiter
/// has to try often.
const LONGEST: Duration = Duration::from_millis(4);

/// Tries again while another process keeps the file locked, until the time is up: after random pauses with a
/// growing bound.
pub(crate) fn while_locked<T>(limit: Duration, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let (since, mut ceiling) = (now(), FIRST);
    loop {
        match work() {
            Err(error) if *error.kind() == ErrorKind::Locked && since.elapsed() < limit => {
                thread::park_timeout(ceiling.mul_f64(fastrand::f64()));
                ceiling = (ceiling * 2).min(LONGEST);
            }
            end => return end,
        }
    }
}

/// The time, on threads outside any runtime.
#[expect(clippy::disallowed_methods, reason = "no tokio here, and no clock that could be paused")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
