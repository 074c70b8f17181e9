//! Configures the layer.
use crate::{
    clock::{Clock, millis},
    config::{Config, ConflictPolicy, DerivedKeys},
    error::ConfigError,
    layer::IdempotencyLayer,
    local::{Store, shard::Common},
    protocol::Ttls,
    service::Shared,
};
use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};
use tr_core::{Observer, Standard, SystemClock, WallClock, canonical::FingerprintKey};

/// Times to live reach from here to a year.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What a table of records can number.
const MOST_RECORDS: usize = 1 << 24;
const MOST_WAITERS: usize = 1 << 20;

/// Configures an [`IdempotencyLayer`]. [`build`](Self::build) is the only place that can fail.
#[must_use]
pub struct Builder<A = Standard, V = tr_core::ToolOutcome> {
    answers: A,
    capacity: usize,
    max_waiters: usize,
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
    stored: PhantomData<fn() -> V>,
}

impl<V> Default for Builder<Standard, V> {
    fn default() -> Self {
        Self {
            answers: Standard,
            capacity: 25_000,
            max_waiters: 1_024,
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
            stored: PhantomData,
        }
    }
}

impl<A, V> Builder<A, V> {
    /// Sets who answers for requests and responses; [`Standard`] by default.
    pub fn answers<B>(self, answers: B) -> Builder<B, V> {
        Builder {
            answers,
            capacity: self.capacity,
            max_waiters: self.max_waiters,
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

    /// Sets how long failures are replayed; 5 minutes by default. A tool's manifest may say else.
    pub const fn failed_ttl(mut self, ttl: Duration) -> Self {
        self.failed = ttl;
        self
    }

    /// Sets the lease of a call in flight; 2 minutes by default. A call in this process renews it
    /// by living; one that takes longer is listed as stale. A tool's manifest may say else.
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

    /// Makes the layer.
    ///
    /// # Errors
    /// If a setting is out of its range; the error lists every one.
    pub fn build(self) -> Result<IdempotencyLayer<A, V>, ConfigError> {
        let mut faults = Vec::new();
        for (name, ttl) in [
            ("done_ttl", self.done),
            ("failed_ttl", self.failed),
            ("inflight_ttl", self.inflight),
            ("unknown_ttl", self.unknown),
            ("cut_off_grace", self.grace),
        ] {
            if !(SHORTEST..=LONGEST).contains(&ttl) {
                faults.push(format!("{name} is {ttl:?}, allowed is 1ms to 366 days"));
            }
        }
        for (name, number, most) in [
            ("capacity", self.capacity, MOST_RECORDS),
            ("max_waiters", self.max_waiters, MOST_WAITERS),
        ] {
            if !(1..=most).contains(&number) {
                faults.push(format!("{name} is {number}, allowed is 1 to {most}"));
            }
        }
        ConfigError::of(faults)?;
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
        };
        let common = Common {
            clock: Clock::new(&*self.wall),
            fingerprints: self.fingerprints,
            max_waiters: self.max_waiters,
        };
        let store = Arc::new(Store::new(self.capacity, common));
        Ok(IdempotencyLayer::new(self.answers, Shared { config, store, observer: self.observer }))
    }
}

impl<A, V> fmt::Debug for Builder<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("capacity", &self.capacity)
            .field("max_waiters", &self.max_waiters)
            .field("conflicts", &self.conflicts)
            .field("derived", &self.derived)
            .field("done", &self.done)
            .field("failed", &self.failed)
            .field("inflight", &self.inflight)
            .field("unknown", &self.unknown)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
