//! Applies the lease protocol (`protocol.rs`) to the records of a table, under the table's lock.
use super::{
    notes::Notes,
    table::{
        Caller, Common, Entry, Found, LocalClaim, Settled, Slot, Successor, Table, Task, Wait,
        Waiters,
    },
};
use crate::{
    end::{Refusal, Run, State, answer},
    protocol::{Millis, Reply, Token, Ttls},
    record::RecordState,
};
use std::mem;
use tokio::sync::oneshot;
use tr_core::{DedupeKey, Replay, canonical::Key};

impl<V, N> Table<V, N> {
    /// Deletes the record of this key and returns its waiters.
    pub(crate) fn clear(&mut self, key: &Key) -> Option<(Waiters<N>, Option<State<V>>)> {
        Some(self.dissolve(self.find(key)?))
    }

    /// Deletes a record, and returns its waiters.
    fn dissolve(&mut self, at: usize) -> (Waiters<N>, Option<State<V>>) {
        let entry = self.slots[at].entry.as_mut();
        (entry.map(|entry| mem::take(&mut entry.waiters)).unwrap_or_default(), self.forget(at))
    }

    /// The caller of the call is gone.
    pub(crate) fn detach(&mut self, at: usize, token: Token) {
        if let Some(entry) = self.held(at, token)
            && entry.caller == Caller::Here
        {
            entry.caller = Caller::Dropped;
        }
    }

    /// Deletes the record of a call that will not run, and returns its waiters.
    pub(crate) fn refuse(&mut self, at: usize, token: Token) -> (Waiters<N>, Option<State<V>>) {
        if self.held(at, token).is_some() { self.dissolve(at) } else { (Vec::new(), None) }
    }

    /// A waiter is gone. A result that was ready for it is kept for the next caller.
    pub(crate) fn leave(&mut self, key: &Key, of: u64) {
        if let Some(at) = self.find(key) {
            let entry = self.slots[at].entry.as_mut().expect("found");
            entry.waiters.retain(|waiter| !waiter.is_closed());
            if entry.caller == Caller::Back && entry.record.token.epoch == of {
                entry.caller = Caller::Dropped;
            }
        }
    }

    /// The waiter took the result that was ready for it.
    pub(crate) fn consume(&mut self, key: &Key, of: u64) -> Option<State<V>> {
        let at = self.find(key)?;
        let entry = self.slots[at].entry.as_ref()?;
        let is_spent = entry.caller == Caller::Back && entry.record.token.epoch == of;
        if is_spent { self.forget(at) } else { None }
    }

    /// Records how a call of unknown outcome ended; returns `to` if the outcome is not unknown.
    pub(crate) fn settle(
        &mut self,
        at: usize,
        to: State<V>,
        now: Millis,
        ttl: Millis,
    ) -> Result<State<V>, State<V>> {
        let by = Token { owner: Token::BY_HAND, ..self.next() };
        self.epoch = by.epoch;
        self.change(at, |entry| entry.record.settle(by, to, now, ttl))
    }

    /// The call was not started under this claim: the longest waiter gets it, or the record is
    /// deleted.
    pub(crate) fn release(
        &mut self,
        at: usize,
        token: Token,
        now: Millis,
        ttls: &Ttls,
    ) -> (Option<Successor<N>>, Option<State<V>>) {
        let to = self.next();
        let Some(entry) = self.held(at, token) else { return (None, None) };
        if entry.waiters.is_empty() {
            return (None, self.forget(at));
        }
        let successor = entry.waiters.remove(0);
        entry.record.pass(token, to, now, ttls.inflight);
        if entry.caller == Caller::Dropped {
            entry.caller = Caller::Here;
        }
        self.epoch = to.epoch;
        (Some((successor, to)), None)
    }

    /// The end of this claim's call will not be known; records that, if there is a `ttl`.
    pub(crate) fn lose(
        &mut self,
        at: usize,
        token: Token,
        now: Millis,
        ttl: Option<Millis>,
    ) -> (Waiters<N>, Option<State<V>>) {
        let Some(ttl) = ttl else { return self.refuse(at, token) };
        if self.held(at, token).is_none() {
            return (Vec::new(), None);
        }
        self.change(at, |entry| {
            if entry.caller == Caller::Here {
                entry.caller = Caller::Dropped;
            }
            let before = entry.record.finalize(token, State::Unknown(None), now, ttl);
            (mem::take(&mut entry.waiters), before.ok().flatten())
        })
    }

    /// Makes a record for a call that has none, where there [is room](Self::has_room).
    #[inline]
    pub(crate) fn open(
        &mut self,
        hash: u64,
        local: &LocalClaim<'_>,
        note: impl FnOnce(&mut Notes),
    ) -> (usize, Token, Option<State<V>>) {
        let token = self.next();
        self.epoch = token.epoch;
        let new = Entry::new(&local.id.key, hash, &local.ask(token), Caller::of(local));
        let (at, garbage) = self.put(local.now, new);
        note(&mut self.slots[at].notes);
        (at, token, garbage)
    }
}

impl<V: Clone, N> Table<V, N> {
    /// The response of a call that has succeeded: the fast path of most duplicates.
    #[inline]
    pub(crate) fn hit(
        &mut self,
        at: usize,
        id: &DedupeKey,
        now: Millis,
        common: &Common,
    ) -> Option<(V, Replay)> {
        let entry = self.slots[at].entry.as_mut()?;
        let State::Done(Some(value)) = &entry.record.state else { return None };
        let plain = entry.caller == Caller::Any && entry.record.digest == id.digest;
        if !plain || now >= entry.record.until {
            return None;
        }
        let value = value.clone();
        entry.touched = true;
        Some((value, entry.replay(now, common)))
    }

    /// Claims a call, or returns its state. The caller drops the second value outside the lock.
    pub(crate) fn claim(
        &mut self,
        at: usize,
        local: &LocalClaim<'_>,
        common: &Common,
        note: impl FnOnce(&mut Notes),
    ) -> (Found<V, N>, Option<State<V>>) {
        let ask = local.ask(self.next());
        let entry = self.slots[at].entry.as_mut().expect("found");
        entry.touched = true;
        if matches!(entry.record.state, State::Inflight) {
            // Its run is alive in this process, which renews the lease.
            let renewed = entry.record.renew(entry.record.token, local.now, local.ttls.inflight);
            debug_assert!(renewed, "it is in flight");
        }
        if entry.is_attended() {
            return (Task::Unrecorded, None);
        }
        let (claimed_at, changed_at) = (entry.record.claimed_at, entry.record.changed_at);
        match self.change(at, |entry| entry.record.claim(&ask)) {
            Reply::Claimed(before) => {
                self.epoch = ask.token.epoch;
                let Slot { entry, notes } = &mut self.slots[at];
                let entry = entry.as_mut().expect("found");
                entry.caller = Caller::of(local);
                entry.reserved = None;
                match &before {
                    Some(before) if entry.record.runs > 1 => {
                        let run = Run::of(before, before.recorded(), claimed_at, changed_at);
                        run.into_iter().for_each(|run| entry.remember(run));
                    }
                    _ => entry.earlier.clear(),
                }
                note(notes);
                (Task::Run(entry.record.token), before)
            }
            Reply::Settled => {
                let entry = self.slots[at].entry.as_mut().expect("found");
                let replay = entry.replay(local.now, common);
                let state = RecordState::of(entry.record.state.phase()).as_str();
                let once = entry.caller == Caller::Dropped;
                let answer = answer(&entry.record.state, entry.record.mutating);
                let spent = if once { self.forget(at) } else { None };
                (Task::Replay(answer, replay, state), spent)
            }
            Reply::Busy => (self.join(at, local, common), None),
            Reply::Conflict => (Task::Refuse(Refusal::Conflict), None),
            Reply::Unknown => {
                let entry = self.slots[at].entry.as_ref().expect("found");
                let cause = entry.record.state.failure().map(|failure| failure.recorded.clone());
                (Task::Refuse(Refusal::Unknown(cause)), None)
            }
        }
    }

    fn join(&mut self, at: usize, local: &LocalClaim<'_>, common: &Common) -> Found<V, N> {
        let entry = self.slots[at].entry.as_mut().expect("found");
        if !local.wait {
            return Task::Refuse(Refusal::InFlight);
        }
        if entry.waiters.len() >= common.max_waiters {
            return Task::Refuse(Refusal::TooManyWaiters);
        }
        let (waiter, served) = oneshot::channel();
        entry.waiters.push(waiter);
        let (of, mutating) = (entry.record.token.epoch, entry.record.mutating);
        Task::Wait(Wait { served, of, mutating }, entry.replay(local.now, common))
    }

    /// Keeps the end of a claim's call, if the claim is in force and has no waiters: the common
    /// case.
    ///
    /// # Errors
    /// Otherwise returns the end, for [`finish`](Self::finish).
    #[inline(always)]
    pub(crate) fn keep(
        &mut self,
        at: usize,
        token: Token,
        end: State<V>,
        now: Millis,
        ttl: Millis,
    ) -> Result<(), State<V>> {
        let quiet =
            |entry: &&mut Entry<V, N>| entry.waiters.is_empty() && entry.caller == Caller::Any;
        let Some(entry) = self.held(at, token).filter(quiet) else { return Err(end) };
        entry.record.change_to(end, now, ttl);
        let is_settled = !entry.record.is_pinned();
        self.settled += usize::from(is_settled);
        Ok(())
    }

    /// Returns the waiters of a claim's call with its end, and keeps the end for `ttl`, if there is
    /// one. Deletes the record if there is no end.
    pub(crate) fn finish(
        &mut self,
        at: usize,
        token: Token,
        end: Option<State<V>>,
        now: Millis,
        ttl: Option<Millis>,
    ) -> Settled<V, N> {
        if self.held(at, token).is_none() {
            return Settled { waiters: Vec::new(), answer: None, held: false, garbage: end };
        }
        let Some(end) = end else {
            let (waiters, garbage) = self.dissolve(at);
            return Settled { waiters, answer: None, held: true, garbage };
        };
        let entry = self.slots[at].entry.as_ref().expect("held");
        let wanted = !entry.waiters.is_empty();
        // Clones what a codec keeps, which may panic: before anything has changed.
        let answer = wanted.then(|| answer(&end, entry.record.mutating));
        let (waiters, is_given) = self.change(at, |entry| {
            let before = entry.record.finalize(token, end, now, ttl.unwrap_or_default());
            debug_assert!(matches!(before, Ok(Some(State::Inflight))), "the claim is held");
            // Every caller gets an unknown outcome, so it is not given once.
            if wanted && entry.caller == Caller::Dropped && !entry.record.state.is_unknown() {
                entry.caller = Caller::Back;
            }
            (mem::take(&mut entry.waiters), entry.caller == Caller::Here)
        });
        let garbage = if is_given || ttl.is_none() { self.forget(at) } else { None };
        Settled { waiters, answer, held: true, garbage }
    }
}
