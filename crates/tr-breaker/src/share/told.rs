//! What others have decided of a breaker that is still to be made.
use super::decision::{Decision, State};
use crate::{clock, gate::Gate};
use std::time::Instant;

/// What others have decided of a breaker that is still to be made here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    decision: Decision,
    at: Instant,
}

impl Told {
    /// Nothing, if a new breaker does so by itself.
    pub(crate) fn new(decision: Decision, at: Instant) -> Option<Self> {
        let is_news = decision.is_standing() || decision.state != State::Closed;
        is_news.then_some(Self { decision, at })
    }

    /// Now that it is made.
    pub(crate) fn tell(self, gate: &Gate) {
        let (now, mut decision) = (clock::now(), self.decision);
        if let State::Open { left } = &mut decision.state {
            *left = left.saturating_sub(now.saturating_duration_since(self.at));
        }
        gate.control(now, |machine| machine.adopt(&decision, now));
    }
}
