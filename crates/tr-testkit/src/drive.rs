//! Polls a future only when its waker was woken, and counts the polls.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use tr_core::internal::lock;

/// Virtual time after which a future that was not woken counts as stuck. On a paused clock this
/// costs nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3600);

/// The state of a driven future.
pub(crate) enum End<T> {
    /// It finished.
    Finished(T),
    /// It used up its allowance of polls.
    Spent,
    /// It was not woken.
    Stuck,
}

/// A future that is polled if, and only if, its own waker was woken.
pub(crate) struct Driven<F> {
    future: Option<Pin<Box<F>>>,
    flag: Arc<Flag>,
    waker: Waker,
    decoy: Option<Waker>,
    pub(crate) polls: usize,
}

/// What a future's waker leads to.
pub(crate) struct Flag {
    woken: AtomicBool,
    parent: Mutex<Option<Waker>>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, SeqCst);
        let parent = lock(&self.parent).take();
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

impl<F: Future> Driven<F> {
    pub(crate) fn new(future: F) -> Self {
        let flag = Arc::new(Flag { woken: AtomicBool::new(true), parent: Mutex::new(None) });
        let waker = Waker::from(flag.clone());
        Self { future: Some(Box::pin(future)), flag, waker, decoy: None, polls: 0 }
    }

    /// Polls with another waker before each poll: a future that keeps the first waker loses the
    /// wake-up.
    pub(crate) fn with_decoy(mut self) -> Self {
        self.decoy = Some(Waker::noop().clone());
        self
    }

    /// Drops the future; the strong count of what is returned is that of its wakers that are still
    /// held.
    pub(crate) fn abandon(self) -> Weak<Flag> {
        Arc::downgrade(&self.flag)
    }

    /// Drives until the end, the `allowance` of polls, or [`PATIENCE`].
    pub(crate) async fn run(&mut self, allowance: usize) -> End<F::Output> {
        let driving = poll_fn(|cx| self.poll_within(cx, allowance));
        tokio::time::timeout(PATIENCE, driving).await.unwrap_or(End::Stuck)
    }

    pub(crate) fn poll_within(
        &mut self,
        cx: &mut Context<'_>,
        allowance: usize,
    ) -> Poll<End<F::Output>> {
        let parent = Some(cx.waker().clone());
        *lock(&self.flag.parent) = parent;
        if self.polls >= allowance {
            return Poll::Ready(End::Spent);
        }
        if !self.flag.woken.swap(false, SeqCst) {
            return Poll::Pending;
        }
        self.polls += 1;
        match self.poll_now() {
            Poll::Ready(output) => {
                self.future = None;
                Poll::Ready(End::Finished(output))
            }
            Poll::Pending if self.polls >= allowance => Poll::Ready(End::Spent),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_now(&mut self) -> Poll<F::Output> {
        let future = self.future.as_mut().expect("driven after its end");
        if let Some(decoy) = &self.decoy
            && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(decoy))
        {
            return Poll::Ready(output);
        }
        future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}
