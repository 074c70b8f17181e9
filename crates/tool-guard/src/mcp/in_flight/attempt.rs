//! An attempt of a call, and until when it may take.
use super::{asked::PATIENCE, late::Owed};
use crate::mcp::{call::Ending, limits::Limits, message::Token};
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
