//! The one timer of all attempts.
use super::tool::Wire;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::time::{Instant, Sleep, sleep_until};

/// Ends the attempts that have waited for too long.
///
/// A timer for each of them would be set and dropped within its call, and whenever no other runs,
/// setting one costs two system calls. An attempt that begins later is not over earlier, so this
/// one stays as it is set until it goes off, also where what it was set for has long ended.
#[derive(Debug)]
pub(crate) struct Patrol {
    wire: Arc<Wire>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patrol {
    pub(crate) const fn new(wire: Arc<Wire>) -> Self {
        Self { wire, timer: None }
    }

    /// Ready when it has gone off and looked.
    pub(crate) fn poll_round(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.is_none() {
            self.timer = self.wire.first_deadline().map(|at| Box::pin(sleep_until(at)));
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(cx));
        self.wire.end_overdue(Instant::now());
        match self.wire.first_deadline() {
            Some(deadline) => timer.as_mut().reset(deadline),
            None => self.timer = None,
        }
        Poll::Ready(())
    }
}
