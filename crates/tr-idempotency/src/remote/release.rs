//! Giving claims back under which nothing was started.
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

/// Claims that are given back at once, and ends that are recorded for who vanished.
const AT_ONCE: usize = 1_024;

/// Attempts to give one back.
const TIMES: u32 = 3;

/// Between two of them, at first.
const PAUSE: Duration = Duration::from_millis(200);

/// What is given back in the background, and what was not: a store that is away must not be
/// followed by a task for every call that it failed.
///
/// Where a claim is not given back, its lease ends and leaves `unknown`, which bars a mutating
/// call: wrong on the safe side.
pub(super) struct Releases {
    places: Arc<Semaphore>,
    left: AtomicU64,
}

impl Releases {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(AT_ONCE)), left: AtomicU64::new(0) })
    }

    /// Claims that were left to their leases.
    pub(super) fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }

    /// A place among those who do something in the background.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// Gives a claim back in a task of its own, once the request that is under way has arrived.
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
                    // Whatever it says: it has arrived, or never will by this connection.
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

    /// Gives a claim back.
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
