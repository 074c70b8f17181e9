//! A layer's requests to its store: claiming, renewing, releasing and recording the end.
//!
//! All of it is I/O, and boxed. Each future may be dropped at any await: a claim that may have been
//! granted is then released in a task of its own.
mod claim_attempt;
pub(crate) mod held;
pub(crate) mod local_probe;
pub(crate) mod obtain;
pub(crate) mod probe;
pub(crate) mod record;
mod release;
mod unrecorded;

use crate::{
    codec::body::Format,
    protocol::Millis,
    store::{RecordStore, StoreError},
};
use probe::Probe;
use release::Releases;
use std::{
    fmt,
    future::Future,
    hash::{BuildHasher, RandomState},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tr_core::Effect;
use unrecorded::Unrecorded;

/// The most ends that may wait to be recorded later.
const LATER: usize = 1_024;

/// A boxed future.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What to do with a call while the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenStoreFails {
    /// Refuses it: [`StoreUnavailable`](crate::error::StoreUnavailable), the tool did not run.
    Refuse,
    /// Runs it without a record; only duplicates in this process join it.
    Run,
}

/// By effect: what to do with a call while the store is unavailable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) read_only: WhenStoreFails,
    pub(crate) idempotent: WhenStoreFails,
    pub(crate) mutating: WhenStoreFails,
}

impl Default for Policy {
    fn default() -> Self {
        use WhenStoreFails::{Refuse, Run};
        Self { read_only: Run, idempotent: Run, mutating: Refuse }
    }
}

impl Policy {
    pub(crate) const fn of(&self, effect: Effect) -> WhenStoreFails {
        match effect {
            Effect::ReadOnly => self.read_only,
            Effect::Idempotent => self.idempotent,
            Effect::Mutating => self.mutating,
        }
    }
}

/// A layer's store and its settings.
pub(crate) struct Remote<V> {
    pub(crate) store: Arc<dyn RecordStore>,
    pub(crate) format: Format<V>,
    pub(crate) policy: Policy,
    /// The timeout of one request to the store.
    pub(crate) patience: Duration,
    /// How long a recorded success is replayed from memory, without a request.
    pub(crate) memory: Option<Millis>,
    /// Whether the store keeps responses and error texts, and not only states.
    pub(crate) keeps_answers: bool,
    /// The name of the service, for callers without a session.
    pub(crate) instance: Option<Box<str>>,
    pub(crate) probe: Option<Arc<dyn Probe<V>>>,
    pub(crate) probe_patience: Duration,
    owners: AtomicU64,
    later: Arc<Semaphore>,
    releases: Arc<Releases>,
    pub(crate) unrecorded: Unrecorded,
}

impl<V> Remote<V> {
    pub(crate) fn new(store: Arc<dyn RecordStore>, format: Format<V>) -> Self {
        Self {
            store,
            format,
            policy: Policy::default(),
            patience: Duration::from_secs(1),
            memory: None,
            keeps_answers: true,
            instance: None,
            probe: None,
            probe_patience: Duration::from_secs(30),
            owners: RandomState::new().hash_one("owner").into(),
            later: Arc::new(Semaphore::new(LATER)),
            releases: Releases::new(),
            unrecorded: Unrecorded::default(),
        }
    }

    /// How many claims could not be released since the layer was built.
    pub(crate) fn left_to_leases(&self) -> u64 {
        self.releases.left()
    }

    /// An owner id: unique, and never [`BY_HAND`](crate::protocol::Token::BY_HAND).
    pub(crate) fn owner(&self) -> u64 {
        loop {
            let owner = mix(self.owners.fetch_add(1, Relaxed));
            if owner != crate::protocol::Token::BY_HAND {
                return owner;
            }
        }
    }

    /// Runs one request within the store timeout and the deadline.
    pub(crate) async fn within<T>(
        &self,
        deadline: Option<Instant>,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let patience = Instant::now() + self.patience;
        let until = deadline.map_or(patience, |deadline| deadline.min(patience));
        match timeout_at(until, request).await {
            Ok(end) => end,
            Err(_) => Err(StoreError::uncertain("no reply within the timeout")),
        }
    }
}

/// Mixes consecutive numbers; a bijection.
const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ (number >> 29)
}

/// Spawns a task on the current runtime; `false` without one.
pub(crate) fn in_background(task: impl Future<Output = ()> + Send + 'static) -> bool {
    let runtime = Handle::try_current();
    runtime.map(|runtime| runtime.spawn(task)).is_ok()
}

impl<V> fmt::Debug for Remote<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("store", &self.store)
            .field("policy", &self.policy)
            .field("patience", &self.patience)
            .field("memory", &self.memory)
            .field("probe", &self.probe)
            .finish_non_exhaustive()
    }
}
