//! The right to make one call, held while it runs.
use crate::{
    clock,
    gate::Gate,
    state::{End, Ticket},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A breaker, as the threads of one stripe hold it: a reference count of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Node {
    pub(crate) gate: Arc<Gate>,
    pub(crate) stripe: usize,
}

/// How a call holds its breaker.
#[derive(Debug)]
pub(crate) enum Held {
    Apart(Arc<Node>),
    Shared(Arc<Gate>),
}

impl Held {
    #[inline]
    fn gate(&self) -> &Gate {
        match self {
            Self::Apart(node) => &node.gate,
            Self::Shared(gate) => gate,
        }
    }

    #[inline]
    fn stripe(&self) -> usize {
        match self {
            Self::Apart(node) => node.stripe,
            Self::Shared(_) => 0,
        }
    }
}

/// The right to make one call. Dropped unspent, a probe goes back and another may go out.
#[derive(Debug)]
pub(crate) struct Permit {
    held: Held,
    ticket: Option<Ticket>,
    /// When the call began, where somebody knows it or the breaker wants to.
    began: Option<Instant>,
}

impl Permit {
    #[inline]
    pub(crate) fn new(held: Held, ticket: Ticket, stamp: Option<Instant>) -> Self {
        let began =
            if held.gate().times_calls() { stamp.or_else(|| Some(clock::now())) } else { stamp };
        Self { held, ticket: Some(ticket), began }
    }

    /// The call does not end at once, so that the time at which it began is not that of its end.
    #[inline]
    pub(crate) fn wait(&mut self) {
        if !self.held.gate().times_calls() {
            self.began = None;
        }
    }

    pub(crate) fn counts_rate_limits(&self) -> bool {
        self.held.gate().settings().count_rate_limits
    }

    /// Spends it on a success.
    #[inline]
    pub(crate) fn succeed(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let gate = self.held.gate();
        if ticket.probe.is_some() || gate.times_calls() {
            return self.settle(ticket, |slow| End::Success { slow }, None);
        }
        // A look at the clock costs as much as all the rest.
        let now = || self.began.unwrap_or_else(clock::now);
        gate.succeed(ticket, self.held.stripe(), now);
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
        let now = clock::now();
        let slower_than = |limit: Duration| {
            self.began.is_some_and(|began| now.saturating_duration_since(began) > limit)
        };
        let slow =
            self.held.gate().settings().slow.is_some_and(|slow| slower_than(slow.longer_than));
        self.held.gate().end(ticket, end(slow), now, why);
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && ticket.probe.is_some()
        {
            self.held.gate().end(ticket, End::Neither, clock::now(), None);
        }
    }
}
