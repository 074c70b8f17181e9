//! What the signals of the system mean to a running guard.
use super::{effects::Declared, setup::Files};
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tool_reliability::{config::Live, telemetry::TARGET};

/// The signals that the guard listens to, from when this was made.
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

    /// Waits for the signal that ends the guard. SIGHUP does, too, unless there is something to
    /// `reload`; it does not return before that is done.
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

/// Reads `files` again, if there are any, and tells the log what became of it.
pub(crate) fn reload(files: Files, live: Live, declared: Declared) -> Option<impl Fn()> {
    files.is_any().then_some(move || match files.read_again(&live, &declared) {
        Ok(reloaded) => {
            let needs_restart = reloaded.needs_restart.join(" ");
            tracing::warn!(target: TARGET, event = "config_reloaded", needs_restart);
        }
        Err(error) => tracing::warn!(target: TARGET, event = "config_not_reloaded", error),
    })
}
