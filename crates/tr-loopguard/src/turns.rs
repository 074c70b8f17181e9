//! The turns that have failures, in shards; nothing is kept of the others, unless signals are
//! watched.
use crate::{
    Signals,
    track::{Asked, End, Step},
    turn::{CallHash, Decision, ErrorHash, Limits, ToolHash, Turn, Weight},
};
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tr_core::{LoopRef, TurnRef};

const SHARDS: usize = 64;

/// The turns that a [`LoopGuardLayer`](crate::LoopGuardLayer) watches. A clone is a handle to the
/// same turns.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shards: Box<[Mutex<HashMap<u64, Turn>>]>,
    /// Turns of which something is kept: none, as a rule, and then nobody needs a lock.
    kept: AtomicUsize,
    hasher: RandomState,
    limits: Limits,
    signals: Option<Signals>,
    memory: Duration,
    per_shard: usize,
}

impl Turns {
    pub(crate) fn new(
        limits: Limits,
        signals: Option<Signals>,
        memory: Duration,
        max_turns: usize,
    ) -> Self {
        Self(Arc::new(Inner {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            kept: AtomicUsize::new(0),
            hasher: RandomState::new(),
            limits,
            signals,
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
            self.0.kept.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether anything is kept of any turn.
    #[inline]
    pub(crate) fn any_kept(&self) -> bool {
        self.0.kept.load(Ordering::Relaxed) > 0
    }

    /// What is watched for beside failures.
    #[inline]
    pub(crate) fn signals(&self) -> Option<&Signals> {
        self.0.signals.as_ref()
    }

    pub(crate) fn admit(
        &self,
        found: &LoopRef<'_>,
        now: impl FnOnce() -> Instant,
        call: impl FnOnce() -> CallHash,
    ) -> Decision {
        let hash = self.hash(found.turn);
        let mut shard = self.shard(hash);
        let Some(turn) = shard.get_mut(&hash) else { return Decision::Continue };
        let limits = self.limits(found);
        let decision = match self.signals() {
            Some(signals) => {
                let asked = self.asked(found, call(), now());
                self.expire(turn, found, || asked.at);
                turn.admit_watched(limits, signals, &asked)
            }
            None => {
                self.expire(turn, found, now);
                turn.admit(limits, call)
            }
        };
        if turn.is_empty() {
            shard.remove(&hash);
            self.0.kept.fetch_sub(1, Ordering::Relaxed);
        }
        decision
    }

    /// Takes down a failure where nothing else is watched.
    pub(crate) fn fail(
        &self,
        found: &LoopRef<'_>,
        call: CallHash,
        error: ErrorHash,
        now: Instant,
    ) -> Decision {
        self.with(found, now, |turn| {
            turn.fail(self.limits(found), call, error, Weight::Lasting, now)
        })
    }

    /// Takes down a call's end where signals are watched.
    pub(crate) fn step(
        &self,
        signals: &Signals,
        found: &LoopRef<'_>,
        call: CallHash,
        end: End,
        weight: Weight,
        now: Instant,
    ) -> Decision {
        let asked = self.asked(found, call, now);
        let step = Step { asked, end, read_only: found.read_only };
        self.with(found, now, |turn| turn.end(self.limits(found), signals, &step, weight))
    }

    /// With what is kept of the call's turn, from now on if nothing was.
    fn with<T>(&self, found: &LoopRef<'_>, now: Instant, then: impl FnOnce(&mut Turn) -> T) -> T {
        let hash = self.hash(found.turn);
        let mut shard = self.shard(hash);
        if !shard.contains_key(&hash) {
            if shard.len() >= self.0.per_shard
                && let Some(oldest) =
                    shard.iter().min_by_key(|(_, turn)| turn.last()).map(|(hash, _)| *hash)
            {
                shard.remove(&oldest);
                self.0.kept.fetch_sub(1, Ordering::Relaxed);
            }
            self.0.kept.fetch_add(1, Ordering::Relaxed);
        }
        let turn = shard.entry(hash).or_default();
        self.expire(turn, found, || now);
        then(turn)
    }

    fn expire(&self, turn: &mut Turn, found: &LoopRef<'_>, now: impl FnOnce() -> Instant) {
        if found.turn.turn.is_none() {
            turn.expire(self.0.memory, now());
        }
    }

    fn limits(&self, found: &LoopRef<'_>) -> Limits {
        let identical = found.max_identical.unwrap_or(self.0.limits.identical);
        Limits { identical, ..self.0.limits }
    }

    fn asked(&self, found: &LoopRef<'_>, call: CallHash, at: Instant) -> Asked {
        Asked { call, tool: ToolHash(self.hash_of(found.tool)), poll: found.poll, at }
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
