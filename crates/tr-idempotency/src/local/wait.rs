//! Waiting for another call's run, without polling or spinning.
use super::{claim::Claim, shard::Shard};
use crate::end::Answer;
use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};
use tr_core::canonical::Key;

/// The slot through which one waiter gets its result. The waiter does not look the record up again,
/// so later changes of the record do not affect it.
pub(crate) struct Node<V>(Mutex<Slot<V>>);

enum Slot<V> {
    Empty(Option<Waker>),
    Full(Delivery<V>),
    Taken,
}

/// What a waiter gets.
pub(crate) enum Delivery<V> {
    /// The end of the call.
    Answer(Answer<V>),
    /// The claim: its former holder left before the call started.
    Claim(Claim<V>),
    /// Nothing: the response can be given only once, and the call may run again.
    Alone,
}

impl<V> Node<V> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Slot::Empty(None))))
    }

    fn lock(&self) -> MutexGuard<'_, Slot<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers and wakes, once.
    pub(crate) fn deliver(&self, delivery: Delivery<V>) {
        let before = mem::replace(&mut *self.lock(), Slot::Full(delivery));
        if let Slot::Empty(Some(waker)) = before {
            waker.wake();
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Delivery<V>> {
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

impl<V> fmt::Debug for Node<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.lock() {
            Slot::Empty(_) => "waiting",
            Slot::Full(_) => "served",
            Slot::Taken => "gone",
        })
    }
}

/// One caller that waits for a call.
pub(crate) struct Waiter<V> {
    node: Arc<Node<V>>,
    shard: Arc<Shard<V>>,
    key: Key,
    /// The epoch of the claim that it waits for.
    of: u64,
    /// The result is given once: to this waiter, or to the next caller.
    once: bool,
    served: bool,
}

impl<V> Waiter<V> {
    pub(crate) const fn new(
        node: Arc<Node<V>>,
        shard: Arc<Shard<V>>,
        key: Key,
        of: u64,
        once: bool,
    ) -> Self {
        Self { node, shard, key, of, once, served: false }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Delivery<V>> {
        let delivery = std::task::ready!(self.node.poll(cx));
        self.served = true;
        if self.once && matches!(delivery, Delivery::Answer(_)) {
            let forgotten = self.shard.lock().consume(&self.key, self.of);
            drop(forgotten);
        }
        Poll::Ready(delivery)
    }
}

impl<V> Drop for Waiter<V> {
    fn drop(&mut self) {
        if !self.served {
            self.shard.lock().leave(&self.key, &self.node, self.of);
        }
    }
}

impl<V> fmt::Debug for Waiter<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waiter").field(&self.node).finish()
    }
}
