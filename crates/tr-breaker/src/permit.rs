//! The right to make one call, held while it runs.
use crate::{
    clock,
    gate::Gate,
    stand::Stand,
    state::{End, Ticket},
};
use std::sync::Arc;
use tr_core::{CoarseInstant, code::RATE_LIMITED, stripe};

/// How a call holds its breaker.
#[derive(Debug)]
pub(crate) enum Held {
    /// It does not: where it has to leave its success is there for good.
    Apart(&'static Stand),
    Shared(Arc<Gate>),
}

/// The right to make one call. Dropped unspent, a probe goes back and another may go out.
#[derive(Debug)]
pub(crate) struct Permit {
    held: Held,
    /// `None`: it is spent, or counts for nothing.
    ticket: Option<Ticket>,
    /// When the call began, if the request carries it or the breaker needs it.
    began: Option<CoarseInstant>,
    /// It did not end at once, so that the time at which it began is not that of its end.
    has_waited: bool,
}

impl Permit {
    #[inline]
    pub(crate) const fn new(
        held: Held,
        ticket: Option<Ticket>,
        began: Option<CoarseInstant>,
    ) -> Self {
        Self { held, ticket, began, has_waited: false }
    }

    #[inline]
    pub(crate) const fn wait(&mut self) {
        self.has_waited = true;
    }

    /// The breaker; `None` if it is gone, and the permit worth nothing.
    #[cold]
    pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
        match &self.held {
            Held::Apart(stand) => stand.gate(),
            Held::Shared(gate) => Some(gate.clone()),
        }
    }

    /// Whether a failure of this code is one.
    pub(crate) fn counts(&self, code: &str) -> bool {
        code != RATE_LIMITED || self.gate().is_some_and(|gate| gate.settings().count_rate_limits)
    }

    /// Spends it on a success.
    #[inline]
    pub(crate) fn succeed(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let is_counted = match &self.held {
            Held::Apart(stand) if ticket.probe.is_none() => {
                stand.count_timeless(ticket.generation, stripe())
            }
            _ => false,
        };
        if is_counted {
            self.ticket = None;
        } else {
            self.succeed_by_clock();
        }
    }

    #[inline(never)]
    fn succeed_by_clock(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let (began, has_waited) = (self.began, self.has_waited);
        // A look at the clock costs as much as all the rest.
        let now = || if has_waited { clock::stamp() } else { began.unwrap_or_else(clock::stamp) };
        let is_counted = ticket.probe.is_none()
            && match &self.held {
                Held::Apart(stand) => stand.count(ticket.generation, stripe(), began, now),
                Held::Shared(gate) => gate.count(ticket, stripe(), began, now),
            };
        if !is_counted {
            self.settle(ticket, |slow| End::Success { slow }, None);
        }
    }

    /// Spends it on a failure, and says why the call failed.
    pub(crate) fn fail(&mut self, why: Arc<str>) {
        if let Some(ticket) = self.ticket.take() {
            self.settle(ticket, |slow| End::Failure { slow }, Some(why));
        }
    }

    /// Spends it on an end that says nothing of the tool, or that it answered.
    pub(crate) fn spend(&mut self, end: End) {
        if let Some(ticket) = self.ticket.take() {
            self.settle(ticket, |_| end, None);
        }
    }

    #[cold]
    fn settle(&self, ticket: Ticket, end: impl FnOnce(bool) -> End, why: Option<Arc<str>>) {
        let Some(gate) = self.gate() else { return };
        let now = clock::now();
        let took = self.began.map(|began| CoarseInstant::at(now).since(began));
        let limit = gate.settings().slow.map(|slow| slow.longer_than);
        let is_slow = limit.zip(took).is_some_and(|(limit, took)| took > limit);
        gate.end(ticket, end(is_slow), now, why);
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if self.ticket.is_some_and(|ticket| ticket.probe.is_some()) {
            self.spend(End::Neither);
        }
    }
}
