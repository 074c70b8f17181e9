//! Records in memory: bounded, found by key, forgotten by the clock algorithm.
use super::{
    entry::{Caller, Entry, Run},
    notes::Notes,
    shard::Common,
    spares::Spares,
    wait::Node,
};
use crate::{
    end::{Answer, Flaw, State, answer},
    protocol::{Ask, Millis, Reply, Token, Ttls},
};
use hashbrown::HashTable;
use std::{mem, sync::Arc, time::Duration};
use tr_core::{Id, MatchedOn, Replay, canonical::Key};

/// One shard's records.
#[derive(Debug)]
pub(crate) struct Table<V> {
    places: HashTable<u32>,
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    /// Where eviction goes on.
    hand: usize,
    /// Where sweeping goes on.
    broom: usize,
    /// Records that may lie here.
    quota: usize,
    /// Records that lie here.
    live: usize,
    /// Of these, the ones that may be forgotten.
    settled: usize,
    epoch: u64,
    seed: u64,
    pub(crate) spares: Spares,
}

#[derive(Debug)]
pub(crate) struct Slot<V> {
    pub(crate) entry: Option<Entry<V>>,
    pub(crate) notes: Notes,
}

/// A call that asks for its claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) id: Id,
    pub(crate) mutating: bool,
    /// Runs a retriable failure again.
    pub(crate) again: bool,
    /// Waits for a call in flight.
    pub(crate) wait: bool,
    /// Joins only a call whose caller vanished.
    pub(crate) cut_off: bool,
    pub(crate) now: Millis,
    pub(crate) ttls: Ttls,
}

/// What it meets.
#[derive(Debug)]
pub(crate) enum Found<V> {
    Claimed {
        at: usize,
        token: Token,
    },
    Waits {
        node: Arc<Node<V>>,
        replay: Replay,
    },
    Replays {
        answer: Answer<V>,
        replay: Replay,
        state: &'static str,
    },
    /// The same call is running for somebody who is still there: this one is another.
    Alone,
    Conflict,
    InFlight,
    TooManyWaiters,
    Unknown {
        cause: Option<Arc<Flaw>>,
    },
    Full,
}

/// What is to be done, outside the lock, once a call has ended.
#[derive(Debug)]
pub(crate) struct Settled<V> {
    pub(crate) waiters: Vec<Arc<Node<V>>>,
    pub(crate) answer: Option<Answer<V>>,
    /// The claim was in force.
    pub(crate) held: bool,
    pub(crate) garbage: Option<State<V>>,
}

impl<V> Table<V> {
    pub(crate) fn new(quota: usize, seed: u64) -> Self {
        Self {
            places: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            hand: 0,
            broom: 0,
            quota,
            live: 0,
            settled: 0,
            epoch: 0,
            seed,
            spares: Spares::default(),
        }
    }

    pub(crate) fn find(&self, key: &Key) -> Option<usize> {
        let is_it = |&at: &u32| self.slots[at as usize].is(key);
        self.places.find(hash(key), is_it).map(|&at| at as usize)
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = (&Entry<V>, &Notes)> {
        self.slots.iter().filter_map(|slot| Some((slot.entry.as_ref()?, &slot.notes)))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<(&Entry<V>, &Notes)> {
        let slot = &self.slots[self.find(key)?];
        Some((slot.entry.as_ref()?, &slot.notes))
    }

    pub(crate) const fn len(&self) -> usize {
        self.live
    }

    /// Changes the record at `at`, and keeps count of those that may be forgotten.
    pub(crate) fn change<R>(&mut self, at: usize, change: impl FnOnce(&mut Entry<V>) -> R) -> R {
        let entry = self.slots[at].entry.as_mut().expect("a record lies here");
        let before = entry.record.is_pinned();
        let result = change(entry);
        match (before, entry.record.is_pinned()) {
            (true, false) => self.settled += 1,
            (false, true) => self.settled -= 1,
            _ => {}
        }
        result
    }

    fn held(&mut self, at: usize, token: Token) -> Option<&mut Entry<V>> {
        self.slots.get_mut(at)?.entry.as_mut().filter(|entry| entry.record.is_held_by(token))
    }

    const fn next(&self) -> Token {
        let epoch = self.epoch + 1;
        Token { epoch, owner: self.seed.wrapping_add(epoch) }
    }

    fn insert(&mut self, at: usize, entry: Entry<V>) {
        self.live += 1;
        self.settled += usize::from(!entry.record.is_pinned());
        let hash = hash(&entry.key);
        self.slots[at].entry = Some(entry);
        let slots = &self.slots;
        let hash_of = |&at: &u32| slots[at as usize].hash();
        self.places.insert_unique(hash, u32::try_from(at).expect("bounded"), hash_of);
    }

    /// Forgets the record at `at`, whatever it says.
    pub(crate) fn remove(&mut self, at: usize) -> Option<Entry<V>> {
        let hash = self.slots[at].hash();
        let entry = self.slots[at].entry.take()?;
        if let Ok(place) = self.places.find_entry(hash, |&it| it as usize == at) {
            place.remove();
        }
        self.live -= 1;
        self.settled -= usize::from(!entry.record.is_pinned());
        self.free.push(u32::try_from(at).expect("bounded"));
        Some(entry)
    }

    /// A free slot, if need be that of a record that may be forgotten.
    fn room(&mut self) -> Option<(usize, Option<Entry<V>>)> {
        let evicted = if self.live < self.quota { None } else { Some(self.evict()?) };
        let at = self.free.pop().map_or(self.slots.len(), |at| at as usize);
        if at == self.slots.len() {
            self.slots.push(Slot { entry: None, notes: Notes::default() });
        }
        Some((at, evicted))
    }

    /// Forgets a settled record that was not asked for since the hand last passed.
    fn evict(&mut self) -> Option<Entry<V>> {
        if self.settled == 0 {
            return None;
        }
        loop {
            let at = advance(&mut self.hand, self.slots.len());
            let Some(entry) = &mut self.slots[at].entry else { continue };
            if !entry.record.is_pinned() && !mem::take(&mut entry.touched) {
                return self.remove(at);
            }
        }
    }

    /// Looks at one record more and forgets it if its time is over.
    fn sweep_one(&mut self, now: Millis) -> Option<Entry<V>> {
        let at = advance(&mut self.broom, self.slots.len());
        let over = self.slots.get(at)?.entry.as_ref()?.is_over(now);
        if over { self.remove(at) } else { None }
    }

    /// Forgets every record whose time is over.
    pub(crate) fn sweep(&mut self, now: Millis) -> Vec<Entry<V>> {
        self.remove_all(|entry, _| entry.is_over(now))
    }

    /// Forgets every record that is to be.
    pub(crate) fn remove_all(
        &mut self,
        is_to_go: impl Fn(&Entry<V>, &Notes) -> bool,
    ) -> Vec<Entry<V>> {
        let going =
            |slot: &Slot<V>| slot.entry.as_ref().is_some_and(|it| is_to_go(it, &slot.notes));
        let places: Vec<_> = (0..self.slots.len()).filter(|&at| going(&self.slots[at])).collect();
        places.into_iter().filter_map(|at| self.remove(at)).collect()
    }

    /// Gives room for one record to another shard, if it can be spared.
    pub(crate) fn lend(&mut self) -> (bool, Option<Entry<V>>) {
        let evicted = if self.live < self.quota { None } else { self.evict() };
        let lends = self.live < self.quota;
        self.quota -= usize::from(lends);
        (lends, evicted)
    }

    pub(crate) const fn borrow(&mut self) {
        self.quota += 1;
    }

    /// The caller of the call is gone.
    pub(crate) fn detach(&mut self, at: usize, token: Token) {
        if let Some(entry) = self.held(at, token)
            && entry.caller == Caller::Here
        {
            entry.caller = Caller::Gone;
        }
    }

    /// A waiter is gone.
    pub(crate) fn leave(&mut self, key: &Key, node: &Arc<Node<V>>) {
        if let Some(at) = self.find(key) {
            let entry = self.slots[at].entry.as_mut().expect("found");
            entry.waiters.retain(|other| !Arc::ptr_eq(other, node));
        }
    }

    /// The answer that could be given once was.
    pub(crate) fn consume(&mut self, key: &Key) -> Option<Entry<V>> {
        let at = self.find(key)?;
        let entry = self.slots[at].entry.as_ref()?;
        let spent = entry.caller == Caller::Gone && !matches!(entry.record.state, State::Inflight);
        if spent { self.remove(at) } else { None }
    }

    /// Nothing was started under this claim: the longest waiter gets it, or the record goes.
    #[expect(clippy::type_complexity, reason = "said in the line above")]
    pub(crate) fn release(
        &mut self,
        at: usize,
        token: Token,
        now: Millis,
        ttls: &Ttls,
    ) -> (Option<(Arc<Node<V>>, Token)>, Option<Entry<V>>) {
        let to = self.next();
        let Some(entry) = self.held(at, token) else { return (None, None) };
        if entry.waiters.is_empty() {
            return (None, self.remove(at));
        }
        let heir = entry.waiters.remove(0);
        entry.record.pass(token, to, now, ttls.inflight);
        self.epoch = to.epoch;
        (Some((heir, to)), None)
    }

    /// The end of this claim's call will never be known.
    #[expect(clippy::type_complexity, reason = "the waiters, and what to drop outside the lock")]
    pub(crate) fn lose(
        &mut self,
        at: usize,
        token: Token,
        now: Millis,
        ttl: Millis,
    ) -> (Vec<Arc<Node<V>>>, Option<State<V>>) {
        if self.held(at, token).is_none() {
            return (Vec::new(), None);
        }
        self.change(at, |entry| {
            if entry.caller == Caller::Here {
                entry.caller = Caller::Gone;
            }
            let before = entry.record.finalise(token, State::Unknown(None), now, ttl);
            (mem::take(&mut entry.waiters), before.ok())
        })
    }
}

impl<V: Clone> Table<V> {
    /// Claims a call, or says what became of it. What is left over is for the caller to drop,
    /// outside the lock.
    #[inline]
    pub(crate) fn claim(
        &mut self,
        wish: &Wish,
        common: &Common,
        note: impl FnOnce(&mut Notes),
    ) -> (Found<V>, Option<State<V>>) {
        let Some(at) = self.find(&wish.id.key) else { return self.claim_new(wish, note) };
        let ask = wish.ask(self.next());
        let entry = self.slots[at].entry.as_mut().expect("found");
        entry.touched = true;
        if matches!(entry.record.state, State::Inflight) {
            // Its driver lives in this process: living renews.
            entry.record.renew(entry.record.token, wish.now, wish.ttls.inflight);
            if entry.is_attended() {
                return (Found::Alone, None);
            }
        }
        let (claimed_at, changed_at) = (entry.record.claimed_at, entry.record.changed_at);
        match self.change(at, |entry| entry.record.claim(&ask)) {
            Reply::Claimed(before) => {
                self.epoch = ask.token.epoch;
                let Slot { entry, notes } = &mut self.slots[at];
                let entry = entry.as_mut().expect("found");
                entry.caller = Caller::of(wish);
                match &before {
                    Some(before) if entry.record.runs > 1 => {
                        entry.earlier.extend(Run::of(before, claimed_at, changed_at));
                    }
                    _ => entry.earlier.clear(),
                }
                note(notes);
                (Found::Claimed { at, token: entry.record.token }, before)
            }
            Reply::Settled => self.replay(at, wish, common),
            Reply::Busy => (self.join(at, wish, common), None),
            Reply::Conflict => (Found::Conflict, None),
            Reply::Unknown => {
                let entry = self.slots[at].entry.as_ref().expect("found");
                (Found::Unknown { cause: entry.cause() }, None)
            }
        }
    }

    fn claim_new(
        &mut self,
        wish: &Wish,
        note: impl FnOnce(&mut Notes),
    ) -> (Found<V>, Option<State<V>>) {
        let swept = self.sweep_one(wish.now);
        let Some((at, evicted)) = self.room() else {
            return (Found::Full, swept.map(|entry| entry.record.state));
        };
        let token = self.next();
        self.epoch = token.epoch;
        note(&mut self.slots[at].notes);
        self.insert(at, Entry::new(wish.id.key, &wish.ask(token), Caller::of(wish)));
        (Found::Claimed { at, token }, swept.or(evicted).map(|entry| entry.record.state))
    }

    #[inline]
    fn replay(&mut self, at: usize, wish: &Wish, common: &Common) -> (Found<V>, Option<State<V>>) {
        let entry = self.slots[at].entry.as_mut().expect("found");
        let age = wish.now.saturating_sub(entry.record.changed_at);
        let replay = Replay {
            matched_on: MatchedOn::Completed,
            age: Duration::from_millis(age),
            fingerprint: entry.fingerprint(common),
        };
        let (state, once) = (entry.state_name(), entry.caller == Caller::Gone);
        let answer = answer(&entry.record.state, entry.record.mutating);
        let spent = if once { self.remove(at) } else { None };
        (Found::Replays { answer, replay, state }, spent.map(|entry| entry.record.state))
    }

    fn join(&mut self, at: usize, wish: &Wish, common: &Common) -> Found<V> {
        let entry = self.slots[at].entry.as_mut().expect("found");
        if !wish.wait {
            return Found::InFlight;
        }
        if entry.waiters.len() >= common.max_waiters {
            return Found::TooManyWaiters;
        }
        let node = Node::new();
        entry.waiters.push(node.clone());
        let replay = Replay {
            matched_on: MatchedOn::Inflight,
            age: Duration::ZERO,
            fingerprint: entry.fingerprint(common),
        };
        Found::Waits { node, replay }
    }

    /// Records the end of a claim's call, or forgets the call if there is none to record.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        at: usize,
        token: Token,
        end: Option<State<V>>,
        now: Millis,
        ttls: &Ttls,
    ) -> Settled<V> {
        if self.held(at, token).is_none() {
            return Settled { waiters: Vec::new(), answer: None, held: false, garbage: end };
        }
        let Some(end) = end else {
            let entry = self.remove(at).expect("held");
            let Entry { waiters, record, .. } = entry;
            return Settled { waiters, answer: None, held: true, garbage: Some(record.state) };
        };
        let ttl = ttls.of(&end);
        let (waiters, answer, told) = self.change(at, |entry| {
            let before = entry.record.finalise(token, end, now, ttl);
            debug_assert!(matches!(before, Ok(State::Inflight)), "the claim is held");
            let waiters = mem::take(&mut entry.waiters);
            let wanted = !waiters.is_empty();
            let answer = wanted.then(|| answer(&entry.record.state, entry.record.mutating));
            (waiters, answer, entry.caller == Caller::Here)
        });
        let spent = if told { self.remove(at) } else { None };
        Settled { waiters, answer, held: true, garbage: spent.map(|entry| entry.record.state) }
    }
}

/// Moves `hand` on around `slots` places, and says where it was.
fn advance(hand: &mut usize, slots: usize) -> usize {
    let at = *hand;
    *hand = if at + 1 < slots { at + 1 } else { 0 };
    at
}

/// All bits of a key in one word. Keys are hashes already, or ought to be.
#[inline]
pub(crate) fn hash(key: &Key) -> u64 {
    let (words, _) = key.as_bytes().as_chunks::<8>();
    let mix = |hash: u64, word: &[u8; 8]| {
        (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let hash = words.iter().fold(0, mix);
    hash ^ (hash >> 32)
}

impl<V> Slot<V> {
    fn is(&self, key: &Key) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.key == *key)
    }

    fn hash(&self) -> u64 {
        self.entry.as_ref().map_or(0, |entry| hash(&entry.key))
    }
}

impl Wish {
    const fn ask(&self, token: Token) -> Ask {
        let Self { id, mutating, again, now, ttls, .. } = *self;
        Ask { digest: id.digest, mutating, again, token, now, ttls }
    }
}
