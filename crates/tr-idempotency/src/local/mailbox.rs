//! A one-shot channel: a claim (`claim.rs`) delivers one value, and wakes the `Waiter` that polls
//! for it.
use std::{
    fmt, mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// The channel to one waiter.
pub(crate) struct Mailbox<T>(Mutex<Slot<T>>);

enum Slot<T> {
    Empty(Option<Waker>),
    Full(T),
    Taken,
}

impl<T> Mailbox<T> {
    fn lock(&self) -> MutexGuard<'_, Slot<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the value and wakes the waiter. Call it once.
    pub(super) fn deliver(&self, delivery: T) {
        let before = mem::replace(&mut *self.lock(), Slot::Full(delivery));
        if let Slot::Empty(Some(waker)) = before {
            waker.wake();
        }
    }

    /// Takes the value. Panics if it was taken before.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut slot = self.lock();
        match mem::replace(&mut *slot, Slot::Taken) {
            Slot::Full(delivery) => Poll::Ready(delivery),
            Slot::Empty(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(cx.waker()));
                *slot = Slot::Empty(Some(waker.unwrap_or_else(|| cx.waker().clone())));
                Poll::Pending
            }
            Slot::Taken => panic!("polled after completion"),
        }
    }
}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.lock() {
            Slot::Empty(_) => "waiting",
            Slot::Full(_) => "served",
            Slot::Taken => "gone",
        })
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self(Mutex::new(Slot::Empty(None)))
    }
}
