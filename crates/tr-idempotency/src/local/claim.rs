//! The claim of one call: the right to run it, and the duty to record its end. And the wait for a
//! call that another caller has claimed.
use super::{
    budget::Reservation,
    slot_pool::Cell,
    table::{Common, Settled, Table, Wait},
};
use crate::{
    end::{Answer, Refusal, State},
    protocol::{Millis, Token, Ttls},
};
use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};
use tr_core::canonical::Key;

/// A part of the records. Calls in different shards share no lock. Claims and waiters hold a
/// reference to their shard, so its reference count is on the cache line of its lock.
pub(crate) struct Shard<V> {
    table: Mutex<Table<V, Delivery<V>>>,
    pub(crate) common: Arc<Common>,
}

/// A claim. Dropped before the call started, it passes to a waiter or leaves no record; dropped
/// after that, it leaves `unknown`.
pub(crate) struct Claim<V> {
    shard: Arc<Shard<V>>,
    /// The slot of the record.
    at: usize,
    token: Token,
    /// When it was granted.
    since: Millis,
    pub(crate) ttls: Ttls,
    pub(crate) mutating: bool,
    /// The tool may have started.
    pub(crate) started: bool,
    settled: bool,
    /// A store has the record; this entry only joins the callers in this process.
    pub(crate) fronts: bool,
    /// Its run had to wait.
    pub(crate) attended: bool,
}

impl<V> Claim<V> {
    #[inline]
    pub(crate) const fn new(
        shard: Arc<Shard<V>>,
        at: usize,
        token: Token,
        (since, ttls, mutating): (Millis, Ttls, bool),
    ) -> Self {
        Self {
            shard,
            at,
            token,
            since,
            ttls,
            mutating,
            started: false,
            settled: false,
            fronts: false,
            attended: false,
        }
    }

    /// Registers the waker for a cancellation. Returns whether the call is cancelled already.
    pub(crate) fn attend(&mut self, driver: &Waker) -> bool {
        self.attended = true;
        let (cancelled, before) = self.shard.lock().attend(self.at, self.token, driver);
        drop(before);
        cancelled
    }

    pub(crate) fn fingerprint(&self, key: &Key) -> [u8; 8] {
        self.shard.common.fingerprints.fingerprint(key).to_bytes()
    }

    /// The caller is gone, and the call goes on.
    pub(crate) fn detach(&self) {
        let driver = {
            let mut table = self.shard.lock();
            table.detach(self.at, self.token);
            table.unattend(self.token)
        };
        drop(driver);
    }

    /// Records the end (`None`: it cannot be kept, and the call may run again) and serves the
    /// waiters, and keeps the empty cell. The end has a response of `size` bytes, was `age` ago and is
    /// kept for `ttl`, or not at all. Returns whether the claim was in force, and whether the
    /// response is small enough to be kept.
    #[inline]
    pub(crate) fn finish<D: Send + 'static>(
        mut self,
        (end, size): (Option<State<V>>, usize),
        ttl: Option<Millis>,
        age: Millis,
        cell: Cell<D>,
    ) -> (bool, bool)
    where
        V: Clone,
    {
        // From here on a panic cannot mean that the call did not run.
        self.started = true;
        // A call that did not have to wait ends at its start time: reading the clock costs too
        // much.
        let now = if self.attended { self.shard.common.clock.now(None) } else { self.since };
        let now = now.saturating_sub(age);
        let ttl = ttl.map(|ttl| ttl.saturating_add(age));
        let budget = &self.shard.common.budget;
        let reservation = budget.reserve(size);
        let (settled, gone, stays) = {
            let mut table = self.shard.lock();
            table.pool.give(cell);
            let loud = match (end, ttl) {
                (Some(end), Some(ttl)) => {
                    table.keep(self.at, self.token, end, now, ttl).map_err(Some)
                }
                (end, _) => Err(end),
            };
            let settled = loud.err().map(|end| table.finish(self.at, self.token, end, now, ttl));
            let (gone, stays) = match reservation {
                Reservation::Fits(None) => (Vec::new(), true),
                reservation => table.weigh(self.at, Some(self.token), reservation, budget),
            };
            (settled, gone, stays)
        };
        self.settled = true;
        let held = settled.is_none_or(|settled| Self::serve(settled));
        drop(gone);
        (held, stays)
    }

    /// Serves the waiters, outside the lock. Returns whether the claim was in force. If a panic
    /// interrupts it, the rest get an unknown outcome.
    #[cold]
    fn serve(settled: Settled<V, Delivery<V>>) -> bool
    where
        V: Clone,
    {
        let Settled { waiters, answer, held, garbage } = settled;
        drop(garbage);
        for waiter in waiters {
            let delivery = answer.clone().map_or(Delivery::Alone, Delivery::Answer);
            drop(waiter.send(delivery));
        }
        held
    }

    /// Refuses the call, also for its waiters.
    pub(crate) fn refuse<D: Send + 'static>(mut self, refused: &Refusal, cell: Cell<D>) {
        self.settled = true;
        let (waiters, garbage) = {
            let mut table = self.shard.lock();
            table.pool.give(cell);
            table.refuse(self.at, self.token)
        };
        drop(garbage);
        for waiter in waiters {
            let answer = Answer::Refused(refused.clone(), self.mutating);
            drop(waiter.send(Delivery::Answer(answer)));
        }
    }

    /// The tool may have run, and its end will not be known.
    fn lose(&self) {
        let now = self.shard.common.clock.now(None);
        let ttl = (!self.fronts).then_some(self.ttls.unknown);
        let lost = self.shard.lock().lose(self.at, self.token, now, ttl);
        // Waiters that get nothing take the outcome as unknown.
        drop(lost);
    }

    /// The call was not started: passes the claim to the next waiter, or deletes the record.
    fn release(&self) {
        let now = self.shard.common.clock.now(None);
        let (successor, garbage) = self.shard.lock().release(self.at, self.token, now, &self.ttls);
        drop(garbage);
        if let Some((waiter, token)) = successor {
            let Self { at, ttls, mutating, .. } = *self;
            let mut claim = Self::new(self.shard.clone(), at, token, (now, ttls, mutating));
            claim.fronts = self.fronts;
            drop(waiter.send(Delivery::Claim(claim)));
        }
    }
}

impl<V> Drop for Claim<V> {
    fn drop(&mut self) {
        if !mem::replace(&mut self.settled, true) {
            if self.started { self.lose() } else { self.release() }
        }
        if self.attended {
            let driver = self.shard.lock().dismiss(self.token);
            drop(driver);
        }
    }
}

tr_core::debug_parts! { Claim<V>, |it| token = it.token, started = it.started }

/// What a waiter gets.
pub(crate) enum Delivery<V> {
    /// The end of the call.
    Answer(Answer<V>),
    /// The claim: its former holder left before the call started.
    Claim(Claim<V>),
    /// Nothing: the response can be given only once, and the call may run again.
    Alone,
}

/// One caller that waits for a call.
pub(crate) struct Waiter<V> {
    pub(super) wait: Wait<Delivery<V>>,
    pub(super) shard: Arc<Shard<V>>,
    pub(super) key: Key,
    /// The result is given once: to this waiter, or to the next caller.
    pub(super) once: bool,
}

impl<V> Waiter<V> {
    pub(crate) async fn delivery(&mut self) -> Delivery<V> {
        let Wait { served, of, mutating } = &mut self.wait;
        let delivery = served.await.unwrap_or_else(|_| {
            // Its holder is gone, and has left no end.
            Delivery::Answer(Answer::Refused(Refusal::Unknown(None), *mutating))
        });
        if self.once && matches!(delivery, Delivery::Answer(_)) {
            let forgotten = self.shard.lock().consume(&self.key, *of);
            drop(forgotten);
        }
        delivery
    }
}

impl<V> Drop for Waiter<V> {
    fn drop(&mut self) {
        if !self.wait.served.is_terminated() {
            self.wait.served.close();
            self.shard.lock().leave(&self.key, self.wait.of);
        }
    }
}

impl<V> Shard<V> {
    pub(crate) fn new(common: Arc<Common>, quota: usize, seed: u64) -> Self {
        Self { table: Mutex::new(Table::new(quota, seed)), common }
    }

    /// A panic under the lock (in a `clone` of what a codec stores) leaves the table consistent.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table<V, Delivery<V>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
