//! Configures the layer.
#[cfg(feature = "encryption")]
use crate::codec::SealingKey;
use crate::{
    clock::{Clock, millis},
    codec::{Frames, Persist, body::Format},
    config::{Config, ConflictPolicy, DerivedKeys},
    error::ConfigError,
    layer::IdempotencyLayer,
    local::{Store, budget::Budget, shard::Common},
    protocol::Ttls,
    remote::{Policy, Remote, WhenStoreFails, local_probe::LocalProbe, probe::Probe},
    service::Shared,
    store::RecordStore,
};
use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};
use tr_core::{DefaultPolicy, Effect, Observer, SystemClock, WallClock, canonical::FingerprintKey};

/// Times to live reach from here to a year.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What a table of records can number.
const MOST_RECORDS: usize = 1 << 24;
const MOST_WAITERS: usize = 1 << 20;

/// What lengths in a record can tell.
const MOST_BYTES: usize = 1 << 30;

/// Configures an [`IdempotencyLayer`]. [`build`](Self::build) is the only place that can fail.
#[must_use]
pub struct Builder<A = DefaultPolicy, V = tr_core::ToolOutcome> {
    answers: A,
    capacity: usize,
    max_waiters: usize,
    max_wait: Duration,
    conflicts: ConflictPolicy,
    derived: DerivedKeys,
    done: Duration,
    failed: Duration,
    inflight: Duration,
    unknown: Duration,
    grace: Duration,
    observer: Option<Arc<dyn Observer>>,
    wall: Arc<dyn WallClock>,
    fingerprints: FingerprintKey,
    remote: Option<Remote<V>>,
    policy: Policy,
    patience: Duration,
    memory: Option<Duration>,
    most_bytes: usize,
    most_kept: usize,
    probe: Option<Arc<dyn Probe<V>>>,
    probe_patience: Duration,
    frames: Frames,
    instance: Option<Box<str>>,
    keeps_answers: bool,
    stored: PhantomData<fn() -> V>,
}

impl<V> Default for Builder<DefaultPolicy, V> {
    fn default() -> Self {
        Self {
            answers: DefaultPolicy,
            capacity: 25_000,
            max_waiters: 1_024,
            max_wait: Duration::from_secs(30),
            conflicts: ConflictPolicy::default(),
            derived: DerivedKeys::default(),
            done: Duration::from_secs(24 * 60 * 60),
            failed: Duration::from_secs(5 * 60),
            inflight: Duration::from_secs(2 * 60),
            unknown: Duration::from_secs(24 * 60 * 60),
            grace: Duration::from_secs(60),
            observer: None,
            wall: Arc::new(SystemClock),
            fingerprints: FingerprintKey::of_process().clone(),
            remote: None,
            policy: Policy::default(),
            patience: Duration::from_secs(1),
            memory: None,
            most_bytes: 1 << 20,
            most_kept: 64 << 20,
            probe: None,
            probe_patience: Duration::from_secs(30),
            frames: Frames::default(),
            instance: None,
            keeps_answers: true,
            stored: PhantomData,
        }
    }
}

impl<A, V> Builder<A, V> {
    /// Sets the policy that reads requests and responses; [`DefaultPolicy`] by default.
    pub fn policy<B>(self, answers: B) -> Builder<B, V> {
        Builder {
            answers,
            capacity: self.capacity,
            max_waiters: self.max_waiters,
            max_wait: self.max_wait,
            conflicts: self.conflicts,
            derived: self.derived,
            done: self.done,
            failed: self.failed,
            inflight: self.inflight,
            unknown: self.unknown,
            grace: self.grace,
            observer: self.observer,
            wall: self.wall,
            fingerprints: self.fingerprints,
            remote: self.remote,
            policy: self.policy,
            patience: self.patience,
            memory: self.memory,
            most_bytes: self.most_bytes,
            most_kept: self.most_kept,
            probe: self.probe,
            probe_patience: self.probe_patience,
            frames: self.frames,
            instance: self.instance,
            keeps_answers: self.keeps_answers,
            stored: PhantomData,
        }
    }

    /// Sets how many records are kept; 25,000 by default. Past that the least used settled ones
    /// are forgotten; calls in flight and mutating calls of unknown outcome never are.
    pub const fn capacity(mut self, records: usize) -> Self {
        self.capacity = records;
        self
    }

    /// Sets how many callers may wait for one call; 1,024 by default.
    pub const fn max_waiters(mut self, waiters: usize) -> Self {
        self.max_waiters = waiters;
        self
    }

    /// Sets how long a call waits for another's run with its key, within its own deadline; 30 s by
    /// default. Then it is told [`InFlight`](crate::error::InFlight), may ask again, and the run
    /// goes on: in this process or another, or in none any more, if that one was killed.
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Sets what becomes of a key that comes again with other params; it is rejected by default.
    pub const fn conflicts(mut self, policy: ConflictPolicy) -> Self {
        self.conflicts = policy;
        self
    }

    /// Sets from what keys are derived; [`DerivedKeys::Step`] by default.
    pub const fn derived_keys(mut self, from: DerivedKeys) -> Self {
        self.derived = from;
        self
    }

    /// Sets how long successes are replayed; 24 hours by default. A tool's manifest may say else.
    pub const fn done_ttl(mut self, ttl: Duration) -> Self {
        self.done = ttl;
        self
    }

    /// Sets how long failures are replayed; 5 minutes by default. A tool's manifest may say else. A
    /// mutating call that failed after it ran, or may have, is replayed for at least as long as a
    /// success.
    pub const fn failed_ttl(mut self, ttl: Duration) -> Self {
        self.failed = ttl;
        self
    }

    /// Sets the lease of a call in flight; 2 minutes by default. A call in this process renews it
    /// by living; one that takes longer is listed as stale. A tool's manifest may say else. With a
    /// [store](Self::store) it must outlast the store's replies by far: where three renewals in a row
    /// come too late to start under, the store counts as one that cannot be asked.
    pub const fn inflight_ttl(mut self, ttl: Duration) -> Self {
        self.inflight = ttl;
        self
    }

    /// Sets how long a mutating call of unknown outcome bars a repeat; 24 hours by default.
    pub const fn unknown_ttl(mut self, ttl: Duration) -> Self {
        self.unknown = ttl;
        self
    }

    /// Sets how long the end of a call that was cut off waits for its repeat; 60 s by default.
    pub const fn cut_off_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets who is told of replays, conflicts and refusals; nobody by default.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets the wall clock that the times in [`DedupeRecord`](crate::DedupeRecord)s begin with; the
    /// machine's by default. It is read once.
    pub fn wall_clock(mut self, wall: Arc<dyn WallClock>) -> Self {
        self.wall = wall;
        self
    }

    /// Sets the secret behind the fingerprints of keys; one drawn per process by default.
    pub fn fingerprint_key(mut self, key: FingerprintKey) -> Self {
        self.fingerprints = key;
        self
    }

    /// Keeps the records in `store`, which outlives this process or is shared by several. None by
    /// default: records live in this process and die with it.
    pub fn store(self, store: impl RecordStore) -> Self
    where
        V: Persist,
    {
        self.shared_store(Arc::new(store))
    }

    /// The same for a store that others hold too.
    pub fn shared_store(mut self, store: Arc<dyn RecordStore>) -> Self
    where
        V: Persist,
    {
        self.remote = Some(Remote::new(store, Format::new(self.most_bytes, Frames::default())));
        self
    }

    /// Sets what becomes of a call of this effect when the store cannot be asked. By default
    /// mutating calls are refused, and all others run.
    pub const fn when_store_fails(mut self, effect: Effect, policy: WhenStoreFails) -> Self {
        match effect {
            Effect::ReadOnly => self.policy.read_only = policy,
            Effect::Idempotent => self.policy.idempotent = policy,
            Effect::Mutating => self.policy.mutating = policy,
        }
        self
    }

    /// Sets how long one request to the store may take, 1 s by default; a claim is sent three times.
    pub const fn store_timeout(mut self, timeout: Duration) -> Self {
        self.patience = timeout;
        self
    }

    /// Gives recorded successes again from this process's memory for so long, without asking the
    /// store; off by default. What is cleared elsewhere is given again here until then.
    pub const fn replay_from_memory(mut self, ttl: Duration) -> Self {
        self.memory = Some(ttl);
        self
    }

    /// Sets how many bytes of an answer are kept, in a store and in this process; 1 MiB by default.
    /// A call with a larger one is recorded as done, in a store with the answer's digest:
    /// duplicates are told [`AnswerNotKept`](crate::error::AnswerNotKept), and it is not run again.
    /// A failure with a larger text stays one, and the record keeps its code, whether the tool ran,
    /// and the beginning of its message, marked as [`shortened`](tr_core::shortened). Who waits for
    /// the call while it runs gets the answer.
    pub const fn max_record_bytes(mut self, bytes: usize) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// Sets how many bytes of answers all records in this process keep together; 64 MiB by default.
    /// Past that answers are dropped and failures shortened, as those that are
    /// [too large](Self::max_record_bytes); records never go for it. Answers and failures of less
    /// than 1 KiB are not counted: the [capacity](Self::capacity) bounds them.
    pub const fn max_kept_bytes(mut self, bytes: usize) -> Self {
        self.most_kept = bytes;
        self
    }

    /// Whether a [store](Self::store) keeps answers and failures' words; it does by default. Else a
    /// duplicate is told [`AnswerNotKept`](crate::error::AnswerNotKept), or the failure's code.
    pub const fn keep_answers(mut self, keep: bool) -> Self {
        self.keeps_answers = keep;
        self
    }

    /// Names the service for callers that name no session, whose keys then hold for services of this
    /// name only. Needed where such callers' records lie in a [store](Self::store), which others may
    /// share; the same for all processes of one service, and after a restart. Without it a call that
    /// has a key and no session is refused there: it could be given another service's answer; so is
    /// a mutating one whose key is derived. Types of one's own say so by `has_scope`.
    pub fn instance(mut self, name: impl Into<Box<str>>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// Encrypts what a store keeps of answers, errors and who asked; nothing is by default. What
    /// was recorded before is refused, unless the key [says otherwise](SealingKey::opens_plain_until):
    /// whoever can write the store could write such records too.
    #[cfg(feature = "encryption")]
    pub fn sealed_with(mut self, key: SealingKey) -> Self {
        self.frames.seal = Some(key);
        self
    }

    /// Sets who finds out what became of calls of unknown outcome; nobody by default. Asked when a
    /// call meets such a record, in this process or in a [store](Self::store).
    pub fn probe(mut self, probe: impl Probe<V> + 'static) -> Self {
        self.probe = Some(Arc::new(probe));
        self
    }

    /// Sets how long a probe may take, 30 s by default, within the caller's deadline. Without an
    /// answer by then the caller is told `outcome_unknown`, and the next asks again.
    pub const fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_patience = timeout;
        self
    }

    /// Makes the layer.
    ///
    /// # Errors
    /// If a setting is out of its range; the error lists every one.
    pub fn build(self) -> Result<IdempotencyLayer<A, V>, ConfigError> {
        self.check()?;
        Ok(self.build_unchecked())
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut faults = Vec::new();
        for (name, ttl) in [
            ("done_ttl", self.done),
            ("failed_ttl", self.failed),
            ("inflight_ttl", self.inflight),
            ("unknown_ttl", self.unknown),
            ("cut_off_grace", self.grace),
            ("store_timeout", self.patience),
            ("probe_timeout", self.probe_patience),
            ("max_wait", self.max_wait),
            ("replay_from_memory", self.memory.unwrap_or(SHORTEST)),
        ] {
            if !(SHORTEST..=LONGEST).contains(&ttl) {
                faults.push(format!("{name} is {ttl:?}, allowed is 1ms to 366 days"));
            }
        }
        for (name, number, most) in [
            ("capacity", self.capacity, MOST_RECORDS),
            ("max_waiters", self.max_waiters, MOST_WAITERS),
            ("max_record_bytes", self.most_bytes, MOST_BYTES),
            ("max_kept_bytes", self.most_kept, usize::MAX),
        ] {
            if !(1..=most).contains(&number) {
                faults.push(format!("{name} is {number}, allowed is 1 to {most}"));
            }
        }
        ConfigError::of(faults)
    }

    /// For settings that are in their ranges.
    pub(crate) fn build_unchecked(self) -> IdempotencyLayer<A, V> {
        let config = Config {
            conflicts: self.conflicts,
            derived: self.derived,
            ttls: Ttls {
                done: millis(self.done),
                failed: millis(self.failed),
                inflight: millis(self.inflight),
                unknown: millis(self.unknown),
            },
            grace: millis(self.grace),
            max_wait: self.max_wait,
        };
        #[cfg(feature = "encryption")]
        let frames = Frames { wall: Some(self.wall.clone()), ..self.frames };
        #[cfg(not(feature = "encryption"))]
        let frames = self.frames;
        let common = Common {
            clock: Clock::new(&*self.wall),
            fingerprints: self.fingerprints,
            max_waiters: self.max_waiters,
            budget: Budget::new(self.most_kept, self.most_bytes),
        };
        let store = Arc::new(Store::new(self.capacity, common));
        let remote = self.remote.map(|mut remote| {
            (remote.format.most_bytes, remote.format.frames) = (self.most_bytes, frames);
            (remote.policy, remote.patience) = (self.policy, self.patience);
            (remote.memory, remote.probe) = (self.memory.map(millis), self.probe.clone());
            remote.probe_patience = self.probe_patience;
            (remote.instance, remote.keeps_answers) = (self.instance, self.keeps_answers);
            Arc::new(remote)
        });
        let probe = self.probe.map(|probe| LocalProbe::new(probe, self.probe_patience));
        let shared = Shared { config, store, observer: self.observer, remote, probe };
        IdempotencyLayer::new(self.answers, shared)
    }
}

impl<A, V> fmt::Debug for Builder<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}
