//! An attempt of a call, and until when it may take.
use super::late::Owed;
use crate::mcp::{
    call::{Ending, Limits},
    message::Token,
};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// An attempt on the wire.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) client_id: Token,
    pub(super) ending: oneshot::Sender<Ending>,
    pub(super) progress_token: Option<Token>,
    pub(super) started: Instant,
    pub(super) last_sign: Instant,
    pub(super) owed: Owed,
}

impl Attempt {
    /// When it times out unless the server sends an answer or progress.
    pub(super) fn deadline(&self, limits: Limits) -> Instant {
        self.started + self.patience(limits)
    }

    /// Leaves out the time since `from`, in which the clock stood.
    pub(super) fn leave_out(&mut self, from: Instant, now: Instant) {
        let from = from.max(self.started);
        let stood = now.saturating_duration_since(from);
        let is_later = self.last_sign > from;
        self.last_sign = if is_later { now } else { self.last_sign + stood };
        self.started += stood;
    }

    /// How long after its start it may take in all.
    pub(super) fn patience(&self, limits: Limits) -> Duration {
        (self.last_sign - self.started + limits.idle).min(limits.hard)
    }
}
