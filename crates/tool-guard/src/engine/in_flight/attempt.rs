//! An attempt of a call, and until when it may take.
use super::late::Owed;
use crate::{
    engine::{call::Ending, limits::Limits},
    wire::jsonrpc::Token,
};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// An attempt on the wire.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) client_id: Token,
    pub(super) ending: oneshot::Sender<Ending>,
    pub(super) progress_token: Option<Token>,
    pub(super) started: Instant,
    pub(super) last_sign: Instant,
    /// How long its clock stood.
    pub(super) stood: Duration,
    pub(super) owed: Owed,
}

impl Attempt {
    /// When it times out unless the server sends an answer or progress; `is_waiting` says whether its clock stands.
    pub(super) fn deadline(&self, limits: Limits, is_waiting: bool) -> Instant {
        let may_stand = if is_waiting { PATIENCE - self.stood } else { Duration::ZERO };
        self.started + self.patience(limits) + may_stand
    }

    /// Leaves out the time since `from`, in which the clock stood.
    pub(super) fn leave_out(&mut self, from: Instant, now: Instant) {
        let from = from.max(self.started);
        let stood = now.saturating_duration_since(from).min(PATIENCE - self.stood);
        self.last_sign = self.last_sign.max(self.last_sign.min(from) + stood);
        self.started += stood;
        self.stood += stood;
    }

    /// How long after its start it may take in all.
    pub(super) fn patience(&self, limits: Limits) -> Duration {
        (self.last_sign - self.started + limits.idle).min(limits.hard)
    }
}

/// A person may take this long, for each attempt. After it the attempt's clock goes on, lest a client that answers
/// nothing, or a server that always asks, keeps it for ever.
const PATIENCE: Duration = Duration::from_secs(3_600);

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
