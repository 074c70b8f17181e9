//! The wait between two attempts: a backoff, then readiness, and what ends both.
use std::{
    future::Future,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// Between two attempts nothing is in flight: whoever ends the wait here knows whether the tool
/// ran, which nobody further out could say.
pub(crate) struct Wait {
    /// `None` once it has ended, or if there is nothing to wait for.
    backoff: Option<Pin<Box<Sleep>>>,
    /// How long readiness is waited for, once it is.
    patience: Option<Pin<Box<Sleep>>>,
    cancelled: Option<Cancelled>,
}

/// Never locked: whoever waits has it for himself.
type Cancelled = Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>;

impl Wait {
    /// Nothing to wait for.
    pub(crate) const NONE: Self = Self { backoff: None, patience: None, cancelled: None };

    /// A wait of `delay`, unless the call is `withdrawn`.
    pub(crate) fn of(
        delay: Duration,
        cancelled: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    ) -> Self {
        let backoff = (!delay.is_zero()).then(|| Box::pin(sleep(delay)));
        Self { backoff, patience: None, cancelled: cancelled.map(Mutex::new) }
    }

    pub(crate) const fn is_backoff(&self) -> bool {
        self.backoff.is_some()
    }

    /// Whether the call is withdrawn; if not, that wakes this task.
    pub(crate) fn is_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        self.cancelled.as_mut().is_some_and(|cancelled| {
            let cancelled = cancelled.get_mut().unwrap_or_else(PoisonError::into_inner);
            cancelled.as_mut().poll(cx).is_ready()
        })
    }

    /// Ready once the backoff is over.
    pub(crate) fn poll_backoff(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(backoff) = &mut self.backoff {
            ready!(backoff.as_mut().poll(cx));
            self.backoff = None;
        }
        Poll::Ready(())
    }

    /// Ready once it is too late for readiness: `until` says when that is.
    pub(crate) fn poll_patience(
        &mut self,
        until: impl FnOnce() -> Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if self.patience.is_none() {
            let Some(until) = until() else { return Poll::Pending };
            self.patience = Some(Box::pin(sleep_until(until)));
        }
        self.patience.as_mut().map_or(Poll::Pending, |patience| patience.as_mut().poll(cx))
    }
}
