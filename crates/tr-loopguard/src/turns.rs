//! The turns that have failures, in shards; nothing is kept of the others, unless signals are
//! watched.
use crate::{
    Signals,
    track::{Asked, End, Step},
    turn::{CallHash, Decision, ErrorHash, Limits, ToolHash, Turn, Weight},
};
use std::{
    collections::{HashMap, HashSet},
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
    shards: Box<[Mutex<Shard>]>,
    /// Turns of which something is kept: none, as a rule, and then nobody needs a lock.
    kept: AtomicUsize,
    hasher: RandomState,
    limits: Limits,
    signals: Option<Signals>,
    memory: Duration,
    per_shard: usize,
}

#[derive(Debug, Default)]
struct Shard {
    turns: HashMap<u64, Turn>,
    /// Turns without a name whose beginning somebody tells, so that nothing of them is forgotten.
    begun: HashSet<u64>,
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

    /// A new turn of `session` begins, for calls that do not name their turn. It lasts until the
    /// next one does or this one [ends](Self::end), however long that is.
    ///
    /// As many sessions are known to tell their turns as turns are remembered; of one that is
    /// forgotten, failures expire again.
    pub fn begin(&self, session: Option<&str>) {
        let hash = self.hash(TurnRef { session, turn: None });
        let mut shard = self.shard(hash);
        self.forget(&mut shard, hash);
        if shard.begun.len() >= self.0.per_shard
            && !shard.begun.contains(&hash)
            && let Some(other) = shard.begun.iter().next().copied()
        {
            shard.begun.remove(&other);
        }
        shard.begun.insert(hash);
    }

    /// A turn has ended: nothing is kept of it.
    pub fn end(&self, session: Option<&str>, turn: Option<&str>) {
        let hash = self.hash(TurnRef { session, turn });
        let mut shard = self.shard(hash);
        self.forget(&mut shard, hash);
        shard.begun.remove(&hash);
    }

    fn forget(&self, shard: &mut Shard, hash: u64) {
        if shard.turns.remove(&hash).is_some() {
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
        let lasts = found.turn.turn.is_some() || shard.begun.contains(&hash);
        let Some(turn) = shard.turns.get_mut(&hash) else { return Decision::Continue };
        let limits = self.limits(found);
        let decision = match self.signals() {
            Some(signals) => {
                let asked = self.asked(found, call(), now());
                self.expire(turn, lasts, || asked.at);
                turn.admit_watched(limits, signals, &asked)
            }
            None => {
                self.expire(turn, lasts, now);
                turn.admit(limits, call)
            }
        };
        if turn.is_empty() {
            self.forget(&mut shard, hash);
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
        if !shard.turns.contains_key(&hash) {
            if shard.turns.len() >= self.0.per_shard
                && let Some(oldest) =
                    shard.turns.iter().min_by_key(|(_, turn)| turn.last()).map(|(hash, _)| *hash)
            {
                self.forget(&mut shard, oldest);
            }
            self.0.kept.fetch_add(1, Ordering::Relaxed);
        }
        let lasts = found.turn.turn.is_some() || shard.begun.contains(&hash);
        let turn = shard.turns.entry(hash).or_default();
        self.expire(turn, lasts, || now);
        then(turn)
    }

    /// Forgets what is old of a turn of which nobody says when it ends.
    fn expire(&self, turn: &mut Turn, lasts: bool, now: impl FnOnce() -> Instant) {
        if !lasts {
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

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The top bits: the table in the shard uses the others.
        let shard = &self.0.shards[(hash >> 58) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
