//! The client of a layer's store: its settings, and what its requests share.
use super::{Boxed, Settings, probe::Probe, unrecorded::Unrecorded};
use crate::{
    codec::{Found, body::Format},
    local::notes::RequestNote,
    protocol::Token,
    record::DedupeRecord,
    store::{ClaimRequest, RecordStore, StoreError, Stored},
};
use std::{
    future::Future,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout, timeout_at},
};

/// The most ends that may wait to be recorded later.
const LATER: usize = 1_024;

/// A layer's store and its settings.
pub(crate) struct Client<V> {
    /// Behind its gate.
    pub(crate) store: Arc<dyn RecordStore>,
    pub(crate) format: Format<V>,
    pub(crate) settings: Settings,
    /// The timeout of one request to the store.
    pub(crate) patience: Duration,
    pub(crate) probe: Option<Arc<dyn Probe<V>>>,
    pub(crate) probe_patience: Duration,
    owners: AtomicU64,
    pub(super) later: Arc<Semaphore>,
    pub(crate) releases: Arc<Releases>,
    pub(crate) unrecorded: Unrecorded,
}

impl<V> Client<V> {
    pub(crate) fn new(
        store: Arc<dyn RecordStore>,
        format: Format<V>,
        settings: Settings,
        patience: Duration,
        (probe, probe_patience): (Option<Arc<dyn Probe<V>>>, Duration),
    ) -> Self {
        Self {
            store,
            format,
            settings,
            patience,
            probe,
            probe_patience,
            owners: RandomState::new().hash_one("owner").into(),
            later: Arc::new(Semaphore::new(LATER)),
            releases: Releases::new(),
            unrecorded: Unrecorded::default(),
        }
    }

    /// An owner id: unique, and never [`BY_HAND`](Token::BY_HAND).
    pub(crate) fn owner(&self) -> u64 {
        loop {
            let owner = mix(self.owners.fetch_add(1, Relaxed));
            if owner != Token::BY_HAND {
                return owner;
            }
        }
    }

    /// The record as operators see it. Parts that cannot be read are left empty.
    pub(crate) fn shown(&self, stored: &Stored) -> DedupeRecord {
        let record = &stored.record;
        let mut note = RequestNote::read(stored, &self.format.frames).unwrap_or_default();
        note.tool = (&*stored.tool).into();
        let found = Found::body(&stored.key, record);
        let history = self.format.history(&found, &record.state);
        let (earlier, failure, settled) = history.unwrap_or_default();
        DedupeRecord::new(&stored.key, record, &note, &earlier, failure.as_deref(), |at| at)
            .settled(settled)
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
            Err(_) => Err(StoreError::uncertain(
                "the store did not reply within its timeout, or before the call's deadline",
            )),
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

tr_core::debug_parts! { Client<V>, |it|
    store = it.store,
    settings = it.settings,
    patience = it.patience,
    probe = it.probe
}

/// The most releases, and records of vanished calls, that run at the same time.
const AT_ONCE: usize = 1_024;

/// Attempts to release one claim.
const RELEASES: u32 = 3;

/// The pause after the first of them.
const PAUSE: Duration = Duration::from_millis(200);

/// Releases claims in the background, with a bound: an unavailable store must not leave a task for
/// every failed call.
///
/// The lease of a claim that is not released ends and leaves `unknown`, which blocks a mutating
/// call. That errs on the safe side.
pub(crate) struct Releases {
    places: Arc<Semaphore>,
    left: AtomicU64,
}

impl Releases {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(AT_ONCE)), left: AtomicU64::new(0) })
    }

    /// The number of claims that were left to their leases.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }

    /// A permit for one background task, if there is one left.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// Releases a claim in a task of its own, after the pending request has ended.
    pub(super) fn release_in_background<T: Send + 'static>(
        self: &Arc<Self>,
        store: &Arc<dyn RecordStore>,
        claim: &Arc<ClaimRequest>,
        patience: Duration,
        sent: Option<Boxed<T>>,
    ) {
        let giving = self.place().map(|place| {
            let (this, store, claim) = (self.clone(), store.clone(), claim.clone());
            in_background(async move {
                if let Some(sent) = sent {
                    // The result does not matter: after it, the request cannot arrive any more.
                    let _ = timeout(patience, sent).await;
                }
                this.release(&*store, &claim, patience).await;
                drop(place);
            })
        });
        if giving != Some(true) {
            self.left.fetch_add(1, Relaxed);
        }
    }

    /// Releases a claim.
    pub(super) async fn release(
        &self,
        store: &dyn RecordStore,
        claim: &ClaimRequest,
        patience: Duration,
    ) {
        for times in 1..=RELEASES {
            match timeout(patience, store.release(&claim.key, claim.owner)).await {
                Ok(Ok(_)) => return,
                Ok(Err(error)) if !error.is_transient() => break,
                Ok(Err(_)) | Err(_) if times == RELEASES => break,
                Ok(Err(_)) | Err(_) => sleep(PAUSE * times * times).await,
            }
        }
        self.left.fetch_add(1, Relaxed);
    }
}
