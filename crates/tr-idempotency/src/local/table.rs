//! The records of one shard, and what is asked of them.
use super::{
    budget::{Budget, Reserved},
    notes::Notes,
    slot_pool::SlotPool,
};
use crate::{
    clock::Clock,
    end::{Answer, Failure, RUNS, Refusal, Run, State},
    protocol::{Ask, Millis, Record, Token, Ttls},
};
use hashbrown::HashTable;
use std::{collections::HashMap, sync::Arc, task::Waker, time::Duration};
use tokio::sync::oneshot;
use tr_core::{
    DedupeKey, MatchedOn, Replay,
    canonical::{FingerprintKey, Key},
};

/// What all shards of a store share, read only.
pub(crate) struct Common {
    pub(crate) clock: Clock,
    pub(crate) fingerprints: FingerprintKey,
    pub(crate) max_waiters: usize,
    pub(crate) budget: Arc<Budget>,
}

/// One shard's records. `N` is what a waiter gets.
pub(crate) struct Table<V, N> {
    pub(super) places: HashTable<u32>,
    pub(super) slots: Vec<Slot<V, N>>,
    pub(super) free: Vec<u32>,
    /// Where eviction continues.
    pub(super) evict_cursor: usize,
    /// Where sweeping continues.
    pub(super) sweep_cursor: usize,
    /// The capacity of this shard.
    pub(super) quota: usize,
    /// The number of records.
    pub(super) live: usize,
    /// The number of records that may be evicted.
    pub(super) settled: usize,
    /// The epoch of the last claim.
    pub(super) epoch: u64,
    /// Makes this store's owners differ from other stores'.
    seed: u64,
    pub(crate) pool: SlotPool,
    pub(super) drivers: Drivers,
}

/// A place for a record and its notes.
pub(crate) struct Slot<V, N> {
    pub(crate) entry: Option<Entry<V, N>>,
    pub(crate) notes: Notes,
}

impl<V, N> Table<V, N> {
    pub(crate) fn new(quota: usize, seed: u64) -> Self {
        Self {
            places: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            evict_cursor: 0,
            sweep_cursor: 0,
            quota,
            live: 0,
            settled: 0,
            epoch: 0,
            seed,
            pool: SlotPool::default(),
            drivers: Drivers::default(),
        }
    }

    /// The record at `at`, if this claim is in force.
    pub(super) fn held(&mut self, at: usize, token: Token) -> Option<&mut Entry<V, N>> {
        self.slots.get_mut(at)?.entry.as_mut().filter(|entry| entry.record.is_held_by(token))
    }

    /// The token of the next claim.
    pub(super) const fn next(&self) -> Token {
        let epoch = self.epoch + 1;
        Token { epoch, owner: self.seed.wrapping_add(epoch) }
    }
}

/// One record.
pub(crate) struct Entry<V, N> {
    pub(crate) key: Key,
    pub(super) hash: u64,
    pub(crate) record: Record<Option<V>, Failure<V>>,
    pub(crate) waiters: Waiters<N>,
    pub(crate) caller: Caller,
    /// The bytes of its response, if it is large.
    pub(crate) reserved: Option<Reserved>,
    /// Whether it was used since the eviction cursor last passed it.
    pub(crate) touched: bool,
    /// Computed for the first duplicate, since most calls have none.
    fingerprint: Option<[u8; 8]>,
    /// The runs before the one of the record.
    pub(crate) earlier: Vec<Run>,
}

/// Which callers get the result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Every caller with the key.
    Any,
    /// Only the caller that made the call: the key was derived.
    Here,
    /// That caller is gone; the next caller with the same key counts as its retry.
    Dropped,
    /// That caller has retried, and the result is ready for it alone.
    Back,
}

impl Caller {
    pub(crate) const fn of(local: &LocalClaim<'_>) -> Self {
        if local.cut_off { Self::Here } else { Self::Any }
    }
}

impl<V, N> Entry<V, N> {
    #[inline]
    pub(super) fn new(key: &Key, hash: u64, ask: &Ask, caller: Caller) -> Self {
        Self {
            key: *key,
            hash,
            record: Record::new(ask),
            waiters: Vec::new(),
            caller,
            reserved: None,
            touched: false,
            fingerprint: None,
            earlier: Vec::new(),
        }
    }

    /// Whether it has expired. A call in flight does not: its run is alive.
    #[inline]
    pub(super) fn is_over(&self, now: Millis) -> bool {
        !matches!(self.record.state, State::Inflight) && now >= self.record.until
    }

    /// Whether the call's caller is still there, or has retried: no other caller joins it.
    pub(crate) fn is_attended(&self) -> bool {
        match self.caller {
            Caller::Any => false,
            Caller::Here | Caller::Back => true,
            Caller::Dropped => !self.waiters.is_empty(),
        }
    }

    /// Keeps the former run when another one starts.
    pub(crate) fn remember(&mut self, run: Run) {
        if self.earlier.len() == RUNS {
            self.earlier.remove(0);
        }
        self.earlier.push(run);
    }

    /// The replay note for a duplicate that comes now.
    #[inline(always)]
    pub(crate) fn replay(&mut self, now: Millis, common: &Common) -> Replay {
        let make = || common.fingerprints.fingerprint(self.key).to_bytes();
        let fingerprint = *self.fingerprint.get_or_insert_with(make);
        match self.record.state {
            State::Inflight => {
                Replay { matched_on: MatchedOn::Inflight, age: Duration::ZERO, fingerprint }
            }
            _ => {
                let age = Duration::from_millis(now.saturating_sub(self.record.changed_at));
                Replay { matched_on: MatchedOn::Completed, age, fingerprint }
            }
        }
    }
}

/// The waiters of one call.
pub(crate) type Waiters<N> = Vec<oneshot::Sender<N>>;

/// The waiter that a claim passes to, and its new token.
pub(crate) type Successor<N> = (oneshot::Sender<N>, Token);

/// A claim of a call in this process's tables.
#[derive(Clone, Copy)]
pub(crate) struct LocalClaim<'i> {
    // By reference: its 64 unaligned bytes are slow to move.
    pub(crate) id: &'i DedupeKey,
    pub(crate) mutating: bool,
    /// Runs a retriable failure again.
    pub(crate) again: bool,
    /// Runs with other params than a call that failed.
    pub(crate) corrects: bool,
    /// Waits for a call in flight.
    pub(crate) wait: bool,
    /// Joins only a call whose caller is gone.
    pub(crate) cut_off: bool,
    /// Its record stays in this process, whether or not there is a store.
    pub(crate) in_process: bool,
    pub(crate) now: Millis,
    pub(crate) ttls: Ttls,
}

/// What a call has to do after its claim. `C` is what it has then, `W` what it waits with.
pub(crate) enum Task<V, C, W> {
    /// Run, and record the end.
    Run(C),
    /// Run without a record: the same call is running for a caller that is still there, so this is another call.
    Unrecorded,
    Wait(W, Replay),
    /// Return this, from a record in the state of this name.
    Replay(Answer<V>, Replay, &'static str),
    Refuse(Refusal),
}

/// The wait for the end of another caller's call.
pub(crate) struct Wait<N> {
    pub(super) served: oneshot::Receiver<N>,
    /// The epoch of the claim that is waited for, and whether its call is mutating.
    pub(super) of: u64,
    pub(super) mutating: bool,
}

/// The task by one table.
pub(crate) type Found<V, N> = Task<V, Token, Wait<N>>;

/// What to do outside the lock once a call has ended.
pub(crate) struct Settled<V, N> {
    pub(crate) waiters: Waiters<N>,
    pub(crate) answer: Option<Answer<V>>,
    /// The claim was in force.
    pub(crate) held: bool,
    pub(crate) garbage: Option<State<V>>,
}

impl LocalClaim<'_> {
    /// When it was made, how long its states last, and whether the call is mutating.
    pub(super) const fn terms(&self) -> (Millis, Ttls, bool) {
        (self.now, self.ttls, self.mutating)
    }

    pub(super) const fn ask(&self, token: Token) -> Ask {
        let Self { id, mutating, again, corrects, now, ttls, .. } = *self;
        Ask { digest: id.digest, mutating, again, corrects, token, now, ttls }
    }
}

/// The runs that had to wait, by the epochs of their claims. A call that never waits is not among
/// them.
#[derive(Default)]
pub(super) struct Drivers(pub(super) HashMap<u64, Driver>);

pub(super) struct Driver {
    pub(super) at: usize,
    pub(super) token: Token,
    pub(super) waker: Option<Waker>,
    pub(super) cancelled: bool,
}

impl Drivers {
    pub(super) fn of(&mut self, at: usize, token: Token) -> &mut Driver {
        let new = || Driver { at, token, waker: None, cancelled: false };
        self.0.entry(token.epoch).or_insert_with(new)
    }
}
