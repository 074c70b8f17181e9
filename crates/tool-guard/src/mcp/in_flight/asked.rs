//! What the server asks of the client while calls run: the time until the client answers is not the server's.
use crate::mcp::message::Token;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// A person may take this long, for each attempt. After it the attempt's clock goes on, lest a client that answers
/// nothing, or a server that always asks, keeps it for ever.
pub(super) const PATIENCE: Duration = Duration::from_secs(3_600);

/// More requests than servers have open.
const MOST: usize = 1_024;

/// The server's open requests.
#[derive(Debug, Default)]
pub(super) struct Asked {
    open: HashMap<Token, Instant>,
    /// Since when there is one.
    since: Option<Instant>,
}

impl Asked {
    pub(super) fn ask(&mut self, id: Token, now: Instant) {
        if self.open.len() < MOST {
            self.open.entry(id).or_insert(now);
            self.since.get_or_insert(now);
        }
    }

    /// The request has its answer, or the server no longer wants one. Returns since when the clock stood, if it goes on
    /// now.
    pub(super) fn end(&mut self, id: &Token) -> Option<Instant> {
        self.open.remove(id)?;
        self.resume()
    }

    /// Forgets requests that are open for too long, as [`end`](Self::end) does.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.open.retain(|_, asked| now.saturating_duration_since(*asked) < PATIENCE);
        self.resume()
    }

    /// Whether the clock stands.
    pub(super) fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    fn resume(&mut self) -> Option<Instant> {
        if self.open.is_empty() { self.since.take() } else { None }
    }
}
