//! The turns that have failures, in shards; other turns are not kept, unless signals are enabled.
use crate::{
    Mode, Signals,
    call::{CallHash, Decision, End, ReachedLimit, RequestedCall, Step, ToolHash, Weight},
    call_limit::{CallCount, CallLimits},
    turn::{Judge, Limits, Rules, Turn},
};
use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tr_core::{LoopRef, TurnRef, debug_parts, internal::lock};

const SHARDS: usize = 64;

/// The turns that a [`LoopGuardLayer`](crate::LoopGuardLayer) watches. A clone is a handle to the
/// same turns.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Inner>);

struct Inner {
    shards: Box<[Mutex<Shard>]>,
    /// The number of kept turns: usually none, and then no call takes a lock.
    kept: AtomicUsize,
    hasher: RandomState,
    settings: Settings,
}

/// What is set for all turns.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    pub(crate) calls: CallLimits,
    pub(crate) signals: Option<Signals>,
    pub(crate) memory: Duration,
    pub(crate) max_turns: usize,
}

debug_parts! { Inner, |it| settings = it.settings, kept = it.kept }

#[derive(Debug, Default)]
struct Shard {
    turns: HashMap<u64, Turn>,
    /// The calls of turns and of sessions, where they are limited.
    calls: HashMap<u64, CallCount>,
    /// Turns without a name that [`Turns::begin`] started, whose failures do not expire.
    begun: HashSet<u64>,
}

impl Shard {
    /// Whether the end of the call's turn is known.
    fn knows(&self, found: &LoopRef<'_>, hash: u64) -> bool {
        found.turn.turn.is_some() || self.begun.contains(&hash)
    }
}

/// The judgement of a call's end.
pub(crate) struct Judgement {
    pub(crate) decision: Decision,
    /// The number of failures to warn of, in this time or in this turn.
    pub(crate) errors: Option<(u32, Option<Duration>)>,
}

impl Turns {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(Inner {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            kept: AtomicUsize::new(0),
            hasher: RandomState::new(),
            settings,
        }))
    }

    /// Begins a new turn of `session`, for calls that do not name their turn. It lasts until the
    /// next one begins or this one [ends](Self::end).
    ///
    /// The number of such sessions is bounded by [`max_turns`](crate::Builder::max_turns); the
    /// failures of a session past that expire again.
    pub fn begin(&self, session: Option<&str>) {
        let hash = self.hash_of(TurnRef { session, turn: None });
        let mut shard = self.shard(hash);
        self.forget(&mut shard, hash);
        if shard.begun.len() >= self.0.settings.max_turns.div_ceil(SHARDS)
            && !shard.begun.contains(&hash)
            && let Some(other) = shard.begun.iter().next().copied()
        {
            shard.begun.remove(&other);
        }
        shard.begun.insert(hash);
    }

    /// Ends a turn, and drops its state.
    pub fn end(&self, session: Option<&str>, turn: Option<&str>) {
        let hash = self.hash_of(TurnRef { session, turn });
        let mut shard = self.shard(hash);
        self.forget(&mut shard, hash);
        shard.begun.remove(&hash);
    }

    fn forget(&self, shard: &mut Shard, hash: u64) {
        shard.calls.remove(&hash);
        if shard.turns.remove(&hash).is_some() {
            self.0.kept.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether any turn is kept.
    #[inline]
    pub(crate) fn any_kept(&self) -> bool {
        self.0.kept.load(Ordering::Relaxed) > 0
    }

    /// The signals that are detected beside failures.
    #[inline]
    pub(crate) fn signals(&self) -> Option<&Signals> {
        self.0.settings.signals.as_ref()
    }

    /// Whether the number of calls is limited.
    #[inline]
    pub(crate) fn limits_calls(&self) -> bool {
        self.0.settings.calls.is_any() && self.refuses()
    }

    /// Whether a call may be refused at all.
    #[inline]
    pub(crate) fn refuses(&self) -> bool {
        self.0.settings.mode != Mode::Note
    }

    /// Counts a call that begins, unless its turn or its session has had as many as it may. Calls that begin at one
    /// moment may pass the limit together.
    pub(crate) fn count_call(&self, found: &LoopRef<'_>, now: Instant) -> Option<ReachedLimit> {
        let Settings { calls, memory, max_turns, .. } = &self.0.settings;
        let tool = self.hash_of(found.tool);
        let turn = self.hash_of(found.turn);
        let session = self.hash_of(("session", found.turn.session));
        let limits = [
            (turn, [calls.per_turn, found.calls_per_turn]),
            (session, [calls.per_session, found.calls_per_session]),
        ];
        let limits = limits.iter().filter(|(_, limits)| limits.iter().any(Option::is_some));
        for (hash, limits) in limits.clone() {
            let mut shard = self.shard(*hash);
            let ends = *hash == turn && !shard.knows(found, *hash);
            let Some(count) = shard.calls.get_mut(hash) else { continue };
            count.expire(ends.then_some(*memory), now);
            if let Some((calls, of_tool)) = count.reached(*limits, tool) {
                // A model that goes on does not pause.
                count.last = Some(now);
                return Some(ReachedLimit { calls, of_tool, of_session: *hash == session });
            }
        }
        for (hash, limits) in limits {
            let mut shard = self.shard(*hash);
            CallCount::make_room(&mut shard.calls, *hash, max_turns.div_ceil(SHARDS));
            shard.calls.entry(*hash).or_default().add(*limits, tool, now);
        }
        None
    }

    pub(crate) fn admit(
        &self,
        found: &LoopRef<'_>,
        now: impl FnOnce() -> Instant,
        call: impl FnOnce() -> CallHash,
    ) -> Decision {
        let hash = self.hash_of(found.turn);
        let mut shard = self.shard(hash);
        let lasts = shard.knows(found, hash);
        let Some(turn) = shard.turns.get_mut(&hash) else { return Decision::Continue };
        let judge = self.judge(found, lasts);
        let decision = match self.signals() {
            Some(signals) => {
                let asked = self.asked(found, call(), now());
                self.expire(turn, lasts, || asked.at);
                turn.admit_watched(judge, signals, &asked)
            }
            None => {
                self.expire(turn, lasts, now);
                turn.admit(judge, call)
            }
        };
        if turn.is_empty() {
            self.forget(&mut shard, hash);
        }
        decision
    }

    /// Records a success where signals are off: it may reset the count of its tool.
    pub(crate) fn succeed(&self, found: &LoopRef<'_>) {
        let hash = self.hash_of(found.turn);
        let mut shard = self.shard(hash);
        let Judge { rules, .. } = self.judge(found, shard.knows(found, hash));
        let Some(turn) = shard.turns.get_mut(&hash) else { return };
        turn.succeeded(rules, ToolHash(self.hash_of(found.tool)));
        if turn.is_empty() {
            self.forget(&mut shard, hash);
        }
    }

    /// Records a call's end; where signals are off, only failures have one to record.
    pub(crate) fn step(
        &self,
        found: &LoopRef<'_>,
        call: CallHash,
        end: End,
        weight: Weight,
        now: Instant,
    ) -> Judgement {
        let asked = self.asked(found, call, now);
        self.with(found, now, |turn, judge| match (self.signals(), end) {
            (None, End::Failure(error)) => turn.fail(judge, &asked, error, weight),
            (None, End::Success { .. }) => Decision::Continue,
            (Some(signals), _) => {
                let step = Step { asked, end, read_only: found.read_only };
                turn.end(judge, signals, &step, weight)
            }
        })
    }

    /// Runs `then` on the call's turn, which is kept from now on.
    fn with(
        &self,
        found: &LoopRef<'_>,
        now: Instant,
        then: impl FnOnce(&mut Turn, Judge) -> Decision,
    ) -> Judgement {
        let hash = self.hash_of(found.turn);
        let mut shard = self.shard(hash);
        if !shard.turns.contains_key(&hash) {
            if shard.turns.len() >= self.0.settings.max_turns.div_ceil(SHARDS)
                && let Some(oldest) =
                    shard.turns.iter().min_by_key(|(_, turn)| turn.last()).map(|(hash, _)| *hash)
            {
                self.forget(&mut shard, oldest);
            }
            self.0.kept.fetch_add(1, Ordering::Relaxed);
        }
        let lasts = shard.knows(found, hash);
        let judge = self.judge(found, lasts);
        let turn = shard.turns.entry(hash).or_default();
        self.expire(turn, lasts, || now);
        let decision = then(turn, judge);
        let within = (!lasts).then_some(self.0.settings.memory);
        let errors = turn.errors(judge).map(|failures| (failures, within));
        Judgement { decision, errors }
    }

    /// Drops old entries of a turn whose end is not known.
    fn expire(&self, turn: &mut Turn, lasts: bool, now: impl FnOnce() -> Instant) {
        if !lasts {
            turn.expire(self.0.settings.memory, now());
        }
    }

    /// How a turn is judged, by whether its end is known.
    fn judge(&self, found: &LoopRef<'_>, known: bool) -> Judge {
        let Settings { mode, limits, .. } = &self.0.settings;
        let rules = match mode {
            Mode::Strict => Rules::Letter,
            Mode::Block if known => Rules::Letter,
            Mode::Block => Rules::Warn,
            Mode::Note | Mode::Off => Rules::Note,
        };
        let identical = found.max_identical.unwrap_or(limits.identical);
        let per_turn = found.max_failures_per_turn.unwrap_or(limits.per_turn);
        Judge { rules, limits: Limits { identical, per_turn } }
    }

    fn asked(&self, found: &LoopRef<'_>, call: CallHash, at: Instant) -> RequestedCall {
        let LoopRef { tool, poll, repeats, .. } = *found;
        RequestedCall { call, tool: ToolHash(self.hash_of(tool)), poll, repeats, at }
    }

    pub(crate) fn hash_of(&self, what: impl std::hash::Hash) -> u64 {
        self.0.hasher.hash_one(what)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The top bits: the table in the shard uses the others.
        let shard = &self.0.shards[(hash >> 58) as usize % SHARDS];
        lock(shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::ErrorHash;

    #[test]
    fn turns_and_sessions_are_kept_up_to_a_bound() {
        const MOST: usize = 2 * SHARDS;
        let limits = Limits { identical: 2, per_turn: 10 };
        let memory = Duration::from_secs(60);
        let (mode, signals, max_turns) = (Mode::Strict, None, MOST);
        let calls = CallLimits::default();
        let turns = Turns::new(Settings { mode, limits, calls, signals, memory, max_turns });
        let now = tokio::time::Instant::now().into_std();
        for n in 0..10 * MOST {
            let session = n.to_string();
            turns.begin(Some(&session));
            let turn = TurnRef { session: Some(&session), turn: None };
            let end = End::Failure(ErrorHash(1));
            turns.step(&LoopRef::new(turn, "read"), CallHash(1), end, Weight::Passing, now);
        }
        let shards = || turns.0.shards.iter().map(|shard| shard.lock().unwrap());
        assert!(shards().all(|shard| shard.turns.len() <= 2 && shard.begun.len() <= 2));
        // Each shard has had more turns than it may keep.
        assert!(shards().all(|shard| shard.turns.len() == 2 && shard.begun.len() == 2));
        assert_eq!(turns.0.kept.load(Ordering::Relaxed), MOST);
    }
}
