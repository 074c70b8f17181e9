//! The wait between two attempts: backoff, then readiness, and what cuts them short.
use std::{
    future::Future,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// Between two attempts nothing is in flight, so a wait that is cut short here knows whether the
/// tool ran. An outer layer would not.
pub(crate) struct Wait {
    /// `None` once it has ended, or if there is no delay.
    backoff: Option<Pin<Box<Sleep>>>,
    /// The limit of the wait for readiness, set when that wait begins.
    patience: Option<Pin<Box<Sleep>>>,
    cancelled: Option<Cancelled>,
}

/// A mutex only to be `Sync`: it is never locked.
type Cancelled = Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>;

impl Wait {
    /// Nothing to wait for.
    pub(crate) const NONE: Self = Self { backoff: None, patience: None, cancelled: None };

    /// A wait of `delay`, cut short by `cancelled`.
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

    /// Whether the call is cancelled; if not, registers this task to be woken when it is.
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

    /// Ready once readiness comes too late; `until` is the time.
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
