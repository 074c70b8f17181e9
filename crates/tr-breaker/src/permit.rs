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

/// The right to make one call. Dropped unspent, a probe goes back and another may go out.
#[derive(Debug)]
pub(crate) struct Permit {
    node: Arc<Node>,
    ticket: Option<Ticket>,
    /// When the call began, where that matters.
    began: Option<Instant>,
}

impl Permit {
    pub(crate) fn new(node: Arc<Node>, ticket: Ticket, stamp: Option<Instant>) -> Self {
        let times_calls = node.gate.settings().slow.is_some();
        let began = times_calls.then(|| stamp.unwrap_or_else(clock::now));
        Self { node, ticket: Some(ticket), began }
    }

    pub(crate) fn counts_rate_limits(&self) -> bool {
        self.node.gate.settings().count_rate_limits
    }

    /// Spends it on a success. A stamp saves a look at the clock.
    #[inline]
    pub(crate) fn succeed(mut self, stamp: Option<Instant>) {
        let Some(ticket) = self.ticket.take() else { return };
        if self.began.is_some() || ticket.probe.is_some() {
            return self.settle(ticket, |slow| End::Success { slow }, None);
        }
        let now = stamp.unwrap_or_else(clock::now);
        self.node.gate.succeed(ticket, self.node.stripe, now);
    }

    /// Spends it on a failure, and says why the call failed.
    #[cold]
    pub(crate) fn fail(mut self, why: Arc<str>) {
        if let Some(ticket) = self.ticket.take() {
            self.settle(ticket, |slow| End::Failure { slow }, Some(why));
        }
    }

    /// Spends it on an end that says nothing of the tool, or that it answered.
    #[cold]
    pub(crate) fn spend(mut self, end: End) {
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
        let slow = self.node.gate.settings().slow.is_some_and(|slow| slower_than(slow.longer_than));
        self.node.gate.end(ticket, end(slow), now, why);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && ticket.probe.is_some()
        {
            self.node.gate.end(ticket, End::Neither, clock::now(), None);
        }
    }
}
