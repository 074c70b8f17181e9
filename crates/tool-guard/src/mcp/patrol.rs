//! The one timer of all attempts.
use super::tool::Wire;
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

/// For so long what the server writes is read before what is overdue is ended.
const READS_ON: Duration = Duration::from_secs(1);

/// Ends the attempts that have waited for too long.
///
/// A timer for each of them would be set and dropped within its call, and whenever no other runs,
/// setting one costs two system calls. An attempt that begins later is not over earlier, so this
/// one stays as it is set until it goes off, also where what it was set for has long ended.
#[derive(Debug)]
pub(crate) struct Patrol {
    wire: Arc<Wire>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The timer has gone off, and the runtime has been asked for what can be read.
    looked: bool,
}

impl Patrol {
    pub(crate) const fn new(wire: Arc<Wire>) -> Self {
        Self { wire, timer: None, looked: false }
    }

    /// Ends when the timer has gone off and what is overdue was ended. It is to be polled where the
    /// server has nothing to read: a guard that was stopped finds answers that came in time.
    pub(crate) async fn round(&mut self) {
        poll_fn(|cx| self.poll_round(cx)).await;
    }

    /// Ends what has been overdue for long, although the server has something to read all the time.
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
            // The runtime polls again once it has looked for what can be read.
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
