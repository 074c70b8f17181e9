//! Whether sharing works: the sharing task reports it, the user reads it ([`Sharing::health`](super::Sharing::health)).
use std::{fmt, mem, sync::Arc};
use tokio::sync::watch;

/// The health of sharing, to read or to await.
#[derive(Clone, Debug)]
pub struct Health {
    status: watch::Receiver<Status>,
}

/// The status of sharing at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Decisions are shared. While it is false, each process uses its own.
    pub connected: bool,
    /// The last error; stays after a recovery. Never contains the password.
    pub error: Option<Arc<str>>,
    /// How often sharing was interrupted.
    pub failures: u64,
    /// Entries in Redis that were ignored, because they are unreadable or written by a newer version.
    pub ignored: u64,
    /// The last one, and why.
    pub last_ignored: Option<Arc<str>>,
}

impl Health {
    /// The current status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Waits for a change and returns the new status; `None` once sharing has ended. A change
    /// since the last call is returned at once. May be dropped at any time.
    pub async fn changed(&mut self) -> Option<Status> {
        self.status.changed().await.ok()?;
        Some(self.status.borrow_and_update().clone())
    }
}

/// The sharing task's end of [`Health`].
#[derive(Debug, Default)]
pub(super) struct Reporter(watch::Sender<Status>);

impl Reporter {
    pub(super) fn health(&self) -> Health {
        Health { status: self.0.subscribe() }
    }

    pub(super) fn connected(&self) {
        self.0.send_if_modified(|status| !mem::replace(&mut status.connected, true));
    }

    pub(super) fn failed(&self, error: &dyn fmt::Display) {
        self.0.send_modify(|status| {
            status.failures += u64::from(status.connected || status.failures == 0);
            status.connected = false;
            status.error = Some(error.to_string().into());
        });
    }

    pub(super) fn ignored(&self, what: &dyn fmt::Display) {
        self.0.send_modify(|status| {
            status.ignored += 1;
            status.last_ignored = Some(what.to_string().into());
        });
    }
}
