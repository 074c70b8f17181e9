//! Handles the system's signals to a running guard.
use super::{effects::Declared, setup::Files};
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tool_reliability::{config::Live, telemetry::TARGET};

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

/// Reads `files` again, if there are any, and logs the result.
pub(crate) fn reload(files: Files, live: Live, declared: Declared) -> Option<impl Fn()> {
    files.is_any().then_some(move || match files.read_again(&live, &declared) {
        Ok(reloaded) => {
            let needs_restart = reloaded.needs_restart.join(" ");
            tracing::warn!(target: TARGET, event = "config_reloaded", needs_restart);
        }
        Err(error) => tracing::warn!(target: TARGET, event = "config_not_reloaded", error),
    })
}
