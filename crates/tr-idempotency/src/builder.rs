//! Configures the layer.
#[cfg(feature = "encryption")]
use crate::codec::SealingKey;
use crate::{
    codec::{Frames, Persist, body::Format},
    config::{ConflictPolicy, DerivedKeys},
    remote::{self, probe::Probe},
    store::RecordStore,
};
use std::{sync::Arc, time::Duration};
use tr_core::{
    ConfigError, DefaultPolicy, Effect, Observer, SystemClock, ToolOutcome, WallClock,
    WhenStoreFails, canonical::FingerprintKey, internal::Faults, setters,
};

/// The allowed range of times to live.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The most records that a table can index.
const MOST_RECORDS: usize = 1 << 24;
const MOST_WAITERS: usize = 1 << 20;
const MOST_IN_FLIGHT: usize = 1 << 20;
/// The most bytes that a length field of a record can state.
const MOST_BYTES: usize = 1 << 30;

/// Configures an [`IdempotencyLayer`](crate::IdempotencyLayer). [`build`](Self::build) is the only
/// place that can fail.
#[must_use]
pub struct Builder<A = DefaultPolicy, V = ToolOutcome> {
    pub(crate) answers: A,
    pub(crate) settings: Settings<V>,
}

/// Makes the format of records from their largest size and their frames.
pub(crate) type MakeFormat<V> = fn(usize, Frames) -> Format<V>;

/// All settings of a layer except its policy.
pub(crate) struct Settings<V> {
    pub(crate) capacity: usize,
    pub(crate) max_waiters: usize,
    pub(crate) max_in_flight: Option<usize>,
    pub(crate) max_wait: Duration,
    pub(crate) conflicts: ConflictPolicy,
    pub(crate) derived: DerivedKeys,
    pub(crate) done: Duration,
    pub(crate) failed: Duration,
    pub(crate) inflight: Duration,
    pub(crate) unknown: Duration,
    pub(crate) grace: Duration,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) wall: Arc<dyn WallClock>,
    pub(crate) fingerprints: FingerprintKey,
    /// The store, and what makes the format of its records.
    pub(crate) store: Option<(Arc<dyn RecordStore>, MakeFormat<V>)>,
    pub(crate) stored: remote::Settings,
    pub(crate) patience: Duration,
    pub(crate) most_bytes: usize,
    pub(crate) most_kept: usize,
    pub(crate) probe: Option<Arc<dyn Probe<V>>>,
    pub(crate) probe_patience: Duration,
    pub(crate) frames: Frames,
}

impl<V> Default for Builder<DefaultPolicy, V> {
    fn default() -> Self {
        Self {
            answers: DefaultPolicy,
            settings: Settings {
                capacity: 25_000,
                max_waiters: 1_024,
                max_in_flight: None,
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
                store: None,
                stored: remote::Settings::default(),
                patience: Duration::from_secs(1),
                most_bytes: 1 << 20,
                most_kept: 64 << 20,
                probe: None,
                probe_patience: Duration::from_secs(30),
                frames: Frames::default(),
            },
        }
    }
}

impl<A, V> Builder<A, V> {
    /// Sets the policy that reads requests and responses; [`DefaultPolicy`] by default.
    pub fn policy<B>(self, answers: B) -> Builder<B, V> {
        Builder { answers, settings: self.settings }
    }

    setters! {
        /// Sets how many records are kept; 25,000 by default. At capacity, the least recently used
        /// settled record is evicted; calls in flight and mutating calls of unknown outcome never are.
        fn capacity(records: usize) { settings.capacity = records }

        /// Sets how many callers may wait for one call; 1,024 by default.
        fn max_waiters(waiters: usize) { settings.max_waiters = waiters }

        /// Sets how many calls may be in flight, repeats that wait among them; no bound by default. At the bound the
        /// service is not ready, so that a layer outside can shed or queue calls. A call that goes on
        /// without its caller keeps its place until it ends.
        fn max_in_flight(calls: usize) { settings.max_in_flight = Some(calls) }

        /// Sets how long a call waits for another's run with its key, within its own deadline; 30 s by
        /// default. Then it fails with [`InFlight`](crate::error::InFlight), and the run goes on.
        fn max_wait(wait: Duration) { settings.max_wait = wait }

        /// Sets how to treat a key that is reused with other params; rejected by default.
        fn conflicts(policy: ConflictPolicy) { settings.conflicts = policy }

        /// Sets from which parts of a call a missing key is derived; [`DerivedKeys::Step`] by default.
        fn derived_keys(from: DerivedKeys) { settings.derived = from }

        /// Sets how long successes are replayed; 24 hours by default. A tool's manifest overrides it.
        fn done_ttl(ttl: Duration) { settings.done = ttl }

        /// Sets how long failures are replayed; 5 minutes by default. A tool's manifest overrides it.
        /// Failures of mutating calls that may have run are kept at least as long as successes. With zero, a
        /// repeat of a call that failed without running runs at once.
        fn failed_ttl(ttl: Duration) { settings.failed = ttl }

        /// Sets the lease of a call in flight; 2 minutes by default. A running call keeps its lease;
        /// one that takes longer is listed as stale. A tool's manifest overrides it. With a
        /// [store](Self::store) it must be far longer than the store's replies take: after three
        /// renewals in a row that came too late, the store counts as unavailable.
        fn inflight_ttl(ttl: Duration) { settings.inflight = ttl }

        /// Sets how long a mutating call of unknown outcome blocks its duplicates; 24 hours by default.
        fn unknown_ttl(ttl: Duration) { settings.unknown = ttl }

        /// Sets how long the result of a cut-off call is kept for its repeat; 60 s by default.
        fn cut_off_grace(grace: Duration) { settings.grace = grace }

        /// Sets the observer of replays, conflicts and refusals; none by default.
        fn observer(observer: Arc<dyn Observer>) { settings.observer = Some(observer) }

        /// Sets the wall clock for [`DedupeRecord`](crate::DedupeRecord)s, which is read once; the
        /// machine's by default.
        fn wall_clock(wall: Arc<dyn WallClock>) { settings.wall = wall }

        /// Sets the secret behind the fingerprints of keys; one drawn per process by default.
        fn fingerprint_key(key: FingerprintKey) { settings.fingerprints = key }

        /// Sets the timeout of one request to the store, 1 s by default; a claim is sent up to three
        /// times.
        fn store_timeout(timeout: Duration) { settings.patience = timeout }

        /// Replays recorded successes from this process's memory for `ttl`, without a request to the
        /// store; off by default. A record that another process clears is still replayed here until
        /// then.
        fn replay_from_memory(ttl: Duration) { settings.stored.memory = Some(ttl) }

        /// Sets the most bytes of a response that are kept, in a store and in this process; 1 MiB by
        /// default. A call with a larger response is recorded as done, in a store with the response's
        /// digest: duplicates get [`AnswerNotKept`](crate::error::AnswerNotKept). Of a failure with a
        /// larger text, the record keeps the code, whether the tool ran, and the beginning of the
        /// message, marked as [`shortened`](tr_core::shortened). Callers that wait for the call get the
        /// whole response.
        fn max_record_bytes(bytes: usize) { settings.most_bytes = bytes }

        /// Sets the most bytes of responses that all records in this process keep together; 64 MiB by
        /// default. Past that, responses are dropped and failures shortened, like those that are [too
        /// large](Self::max_record_bytes); the records themselves stay. Responses and failures of less
        /// than 1 KiB are not counted: the [capacity](Self::capacity) bounds them.
        fn max_kept_bytes(bytes: usize) { settings.most_kept = bytes }

        /// Sets whether a [store](Self::store) keeps responses and error messages; it does by default.
        /// Otherwise a duplicate gets [`AnswerNotKept`](crate::error::AnswerNotKept), or the failure's
        /// code.
        fn keep_answers(keep: bool) { settings.stored.keeps_answers = keep }

        /// Names this service, for callers without a session: their keys then hold only among services
        /// of this name. Needed with a [store](Self::store) that other services may share; the same in
        /// all processes of a service, also after a restart. Without a name, a store's layer refuses a
        /// call with a key and no session, since it could get another service's response, and a
        /// mutating call with a derived key. Request types of your own say whether they have a session
        /// by `has_scope`.
        fn instance(name: impl Into<Box<str>>) { settings.stored.instance = Some(name.into()) }

        /// Encrypts the responses, errors and request notes in a store, and hides keys and digests of params;
        /// off by default. A store that was written without a key, or with another one, is refused
        /// ([`StoreHandle::check_key`](crate::StoreHandle::check_key)).
        #[cfg(feature = "encryption")]
        fn sealed_with(key: SealingKey) { settings.frames.seal = Some(key) }

        /// Sets the probe that looks up the outcome of calls of unknown outcome; none by default. It
        /// runs when a call finds such a record, in this process or in a [store](Self::store).
        fn probe(probe: impl Probe<V> + 'static) { settings.probe = Some(Arc::new(probe)) }

        /// Sets the timeout of a probe, 30 s by default, within the caller's deadline. After a timeout
        /// the caller gets `outcome_unknown`.
        fn probe_timeout(timeout: Duration) { settings.probe_patience = timeout }
    }

    /// Keeps the records in `store`, which may outlive this process and be shared by several. None
    /// by default: records live in this process and die with it.
    pub fn store(self, store: impl RecordStore) -> Self
    where
        V: Persist,
    {
        self.shared_store(Arc::new(store))
    }

    /// Like [`store`](Self::store), for a store that is shared within this process.
    pub fn shared_store(mut self, store: Arc<dyn RecordStore>) -> Self
    where
        V: Persist,
    {
        self.settings.store = Some((store, Format::new));
        self
    }

    /// Sets how to treat a call of this effect while the store is unavailable. By default mutating
    /// calls are refused with [`StoreUnavailable`](crate::error::StoreUnavailable), and all others run.
    pub const fn when_store_fails(mut self, effect: Effect, policy: WhenStoreFails) -> Self {
        self.settings.stored.policy[effect as usize] = policy;
        self
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let mut faults = Faults::default();
        for (name, ttl) in [
            ("done_ttl", self.settings.done),
            ("failed_ttl", self.settings.failed.max(SHORTEST)),
            ("inflight_ttl", self.settings.inflight),
            ("unknown_ttl", self.settings.unknown),
            ("cut_off_grace", self.settings.grace),
            ("store_timeout", self.settings.patience),
            ("probe_timeout", self.settings.probe_patience),
            ("max_wait", self.settings.max_wait),
            ("replay_from_memory", self.settings.stored.memory.unwrap_or(SHORTEST)),
        ] {
            let holds = (SHORTEST..=LONGEST).contains(&ttl);
            faults.check(name, format_args!("{ttl:?}"), holds, "1ms to 366 days");
        }
        for (name, number, most) in [
            ("capacity", self.settings.capacity, MOST_RECORDS),
            ("max_waiters", self.settings.max_waiters, MOST_WAITERS),
            ("max_in_flight", self.settings.max_in_flight.unwrap_or(1), MOST_IN_FLIGHT),
            ("max_record_bytes", self.settings.most_bytes, MOST_BYTES),
            ("max_kept_bytes", self.settings.most_kept, usize::MAX),
        ] {
            faults.range(name, number, 1..=most);
        }
        faults.into_result("idempotency")
    }
}

tr_core::debug_parts! { Builder<A, V>, |it| capacity = it.settings.capacity }
