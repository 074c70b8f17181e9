//! The calls in flight.
use crate::engine::{call::McpCall, tool::ServerLink, warnings::Repeatable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use tokio::task::coop::unconstrained;
use tr_core::{BoxError, ToolOutcome};

/// A call's end, with the call.
pub(crate) type Finished = (Arc<McpCall>, Repeatable, Result<ToolOutcome, BoxError>);

type Running = Pin<Box<dyn Future<Output = Finished> + Send>>;

/// The calls in flight.
pub(crate) struct Calls {
    wire: Arc<ServerLink>,
    running: FuturesUnordered<Running>,
    /// What goes on after a call has ended; nothing waits for it.
    beside: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Calls {
    pub(super) fn new(wire: Arc<ServerLink>) -> Self {
        Self { wire, running: FuturesUnordered::new(), beside: FuturesUnordered::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Adds what goes on after a call has ended.
    pub(super) fn go_on(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.beside.push(Box::pin(work));
    }

    /// Adds a call. It is begun at once, so it keeps its place before the client's next line. May return
    /// another call that has ended.
    pub(super) fn begin(&mut self, mut call: Running) -> Option<Finished> {
        // The next step polls all calls anyway, so no wake-up is needed: the set would make one for each call
        // that is added.
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(finished) = call.as_mut().poll(&mut cx) {
            return Some(finished);
        }
        self.running.push(call);
        match self.running.poll_next_unpin(&mut cx) {
            Poll::Ready(finished) => finished,
            Poll::Pending => None,
        }
    }

    /// Waits until a call has ended, or an attempt has something to send. If the runtime's budget were used
    /// up, calls would be delayed and return in the reverse order, so it is not counted here.
    pub(crate) async fn step(&mut self) -> Option<Finished> {
        let step = poll_fn(|cx| {
            if let Poll::Ready(Some(finished)) = self.running.poll_next_unpin(cx) {
                return Poll::Ready(Some(finished));
            }
            while let Poll::Ready(Some(())) = self.beside.poll_next_unpin(cx) {}
            if self.wire.lock().outbox.is_empty() { Poll::Pending } else { Poll::Ready(None) }
        });
        unconstrained(step).await
    }
}
