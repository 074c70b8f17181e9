//! Handles the system's signals to a running guard.
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that the guard handles, from its creation on.
#[derive(Debug)]
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the signal that ends the guard. SIGHUP ends it too, unless there is something to `reload`;
    /// a reload completes before this returns.
    pub(crate) async fn end(mut self, reload: Option<impl Fn()>) -> u8 {
        loop {
            tokio::select! {
                _ = self.term.recv() => return 15,
                _ = self.int.recv() => return 2,
                _ = self.hup.recv() => match &reload {
                    Some(reload) => reload(),
                    None => return 1,
                },
            }
        }
    }
}
