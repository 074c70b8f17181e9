//! The calls in flight, and the one timer of all their attempts.
use crate::engine::{call::McpCall, tool::ServerLink, warnings::Repeatable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};
use tokio::{
    task::{coop::unconstrained, yield_now},
    time::{Instant, Sleep, sleep_until},
};
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

/// How long the server's output is read before attempts time out.
const READS_ON: Duration = Duration::from_secs(1);

/// Times out attempts that have waited for too long.
///
/// A timer for each of them would be set and dropped within its call, and if no other timer runs, setting one
/// costs two system calls. A later attempt does not time out earlier, so this timer stays as it is set until it
/// fires, even if the attempt that it was set for has long ended.
#[derive(Debug)]
pub(crate) struct TimeoutSweeper {
    wire: Arc<ServerLink>,
    pub(super) timer: Option<Pin<Box<Sleep>>>,
    /// The timer has fired, and the runtime was asked for readable input.
    looked: bool,
}

impl TimeoutSweeper {
    pub(super) const fn new(wire: Arc<ServerLink>) -> Self {
        Self { wire, timer: None, looked: false }
    }

    /// Ends when the timer has fired and overdue attempts were ended. Poll it when the server has nothing to
    /// read, so that a guard that was suspended finds answers that came in time.
    pub(crate) async fn round(&mut self) {
        poll_fn(|cx| self.poll_round(cx)).await;
    }

    /// Ends attempts that have been overdue for long, although the server always has something to read.
    pub(crate) fn end_late(&self) {
        let late = |at: Instant| Instant::now().saturating_duration_since(at) >= READS_ON;
        if self.wire.first_deadline().is_some_and(late) {
            self.wire.end_overdue(Instant::now());
        }
    }

    fn poll_round(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.is_none() {
            self.timer = self.wire.first_deadline().map(|at| Box::pin(sleep_until(at)));
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(cx));
        if !std::mem::replace(&mut self.looked, true) {
            // The runtime polls again after it has looked for readable input.
            let _ = pin!(yield_now()).poll(cx);
            return Poll::Pending;
        }
        self.looked = false;
        self.wire.end_overdue(Instant::now());
        match self.wire.first_deadline() {
            Some(deadline) => timer.as_mut().reset(deadline),
            None => self.timer = None,
        }
        Poll::Ready(())
    }
}
