//! The turns that have failures, in shards; nothing is kept of the others.
use crate::turn::{CallHash, Decision, ErrorHash, Limits, Turn};
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tr_core::TurnRef;

const SHARDS: usize = 64;

/// The turns that a [`LoopGuardLayer`](crate::LoopGuardLayer) watches. A clone is a handle to the
/// same turns.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shards: Box<[Mutex<HashMap<u64, Turn>>]>,
    /// Turns with failures: none, as a rule, and then nobody needs a lock.
    failing: AtomicUsize,
    hasher: RandomState,
    limits: Limits,
    memory: Duration,
    per_shard: usize,
}

impl Turns {
    pub(crate) fn new(limits: Limits, memory: Duration, max_turns: usize) -> Self {
        Self(Arc::new(Inner {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            failing: AtomicUsize::new(0),
            hasher: RandomState::new(),
            limits,
            memory,
            per_shard: max_turns.div_ceil(SHARDS),
        }))
    }

    /// A new turn of `session` begins, for calls that do not name their turn.
    pub fn begin(&self, session: Option<&str>) {
        self.end(session, None);
    }

    /// A turn has ended: nothing is kept of it.
    pub fn end(&self, session: Option<&str>, turn: Option<&str>) {
        let hash = self.hash(TurnRef { session, turn });
        if self.shard(hash).remove(&hash).is_some() {
            self.0.failing.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether any turn has failures.
    #[inline]
    pub(crate) fn any_failing(&self) -> bool {
        self.0.failing.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn admit(
        &self,
        turn: TurnRef<'_>,
        now: impl FnOnce() -> Instant,
        call: impl FnOnce() -> CallHash,
    ) -> Decision {
        let hash = self.hash(turn);
        let mut shard = self.shard(hash);
        let Some(found) = shard.get_mut(&hash) else { return Decision::Continue };
        if turn.turn.is_none() {
            found.expire(self.0.memory, now());
        }
        if found.last().is_none() {
            shard.remove(&hash);
            self.0.failing.fetch_sub(1, Ordering::Relaxed);
            return Decision::Continue;
        }
        found.admit(self.0.limits, call)
    }

    pub(crate) fn fail(
        &self,
        turn: TurnRef<'_>,
        call: CallHash,
        error: ErrorHash,
        now: Instant,
    ) -> Decision {
        let hash = self.hash(turn);
        let mut shard = self.shard(hash);
        if !shard.contains_key(&hash) {
            if shard.len() >= self.0.per_shard
                && let Some(oldest) =
                    shard.iter().min_by_key(|(_, turn)| turn.last()).map(|(hash, _)| *hash)
            {
                shard.remove(&oldest);
                self.0.failing.fetch_sub(1, Ordering::Relaxed);
            }
            self.0.failing.fetch_add(1, Ordering::Relaxed);
        }
        let found = shard.entry(hash).or_default();
        if turn.turn.is_none() {
            found.expire(self.0.memory, now);
        }
        found.fail(self.0.limits, call, error, now)
    }

    pub(crate) fn hash_of(&self, what: impl std::hash::Hash) -> u64 {
        self.0.hasher.hash_one(what)
    }

    fn hash(&self, turn: TurnRef<'_>) -> u64 {
        self.hash_of(turn)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, HashMap<u64, Turn>> {
        // The top bits: the table in the shard uses the others.
        let shard = &self.0.shards[(hash >> 58) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
