//! Releases claims under which no call was started.
use super::{Boxed, in_background};
use crate::store::{ClaimRequest, RecordStore};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

/// The most releases, and records of vanished calls, that run at the same time.
const AT_ONCE: usize = 1_024;

/// Attempts to release one claim.
const TIMES: u32 = 3;

/// The pause after the first of them.
const PAUSE: Duration = Duration::from_millis(200);

/// Releases claims in the background, with a bound: an unavailable store must not leave a task for
/// every failed call.
///
/// The lease of a claim that is not released ends and leaves `unknown`, which blocks a mutating
/// call. That errs on the safe side.
pub(super) struct Releases {
    places: Arc<Semaphore>,
    left: AtomicU64,
}

impl Releases {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(AT_ONCE)), left: AtomicU64::new(0) })
    }

    /// The number of claims that were left to their leases.
    pub(super) fn left(&self) -> u64 {
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
        for times in 1..=TIMES {
            match timeout(patience, store.release(&claim.key, claim.owner)).await {
                Ok(Ok(_)) => return,
                Ok(Err(error)) if !error.is_transient() => break,
                Ok(Err(_)) | Err(_) if times == TIMES => break,
                Ok(Err(_)) | Err(_) => sleep(PAUSE * times * times).await,
            }
        }
        self.left.fetch_add(1, Relaxed);
    }
}
