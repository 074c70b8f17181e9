//! The one timer of all attempts.
use super::tool::ServerLink;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    task::yield_now,
    time::{Instant, Sleep, sleep_until},
};

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
    timer: Option<Pin<Box<Sleep>>>,
    /// The timer has fired, and the runtime was asked for readable input.
    looked: bool,
}

impl TimeoutSweeper {
    pub(crate) const fn new(wire: Arc<ServerLink>) -> Self {
        Self { wire, timer: None, looked: false }
    }

    /// The clock of the calls stood, and goes on: the timer may be set too late.
    pub(crate) fn set_again(&mut self) {
        self.timer = None;
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
