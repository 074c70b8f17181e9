//! Requests to a store that are sent again while it is unavailable, and those that no caller waits for: tasks of their
//! own, with a bound, since an unavailable store must not leave a task for every failed call.
use super::{Boxed, Recorded, TRIED, client::Gate};
use crate::{
    protocol::Token,
    store::{Change, ClaimRequest, Claimed, End, StoreError},
};
use std::{
    borrow::Cow,
    future::Future,
    iter,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, sleep},
};
use tr_core::{canonical::Key, internal::lock};

/// The pauses between the attempts to release a claim.
const RELEASES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];

/// The pauses between the attempts to record an end before the caller gets its answer.
const ENDS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(40)];

/// The most keys of calls whose ends are not recorded.
const MOST_UNRECORDED: usize = 10_000;

/// The pause between two attempts after that, at first and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Sends a request, and again after each of these pauses while the store is unavailable.
pub(crate) async fn retried<T, F>(
    pauses: impl IntoIterator<Item = Duration>,
    mut send: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for pause in pauses {
        match send().await {
            Err(error) if error.is_transient() => sleep(pause).await,
            end => return end,
        }
    }
    send().await
}

/// Spawns a task on the current runtime, if there is a place for it; `false` without a runtime or a place.
fn in_background(places: &Arc<Semaphore>, task: impl Future<Output = ()> + Send + 'static) -> bool {
    let Ok(place) = places.clone().try_acquire_owned() else { return false };
    let placed = async {
        task.await;
        drop(place);
    };
    Handle::try_current().map(|runtime| runtime.spawn(placed)).is_ok()
}

impl Gate {
    /// Releases a claim in a task of its own, after the pending request has ended.
    ///
    /// The lease of a claim that is not released ends and leaves `unknown`, which blocks a mutating
    /// call. That errs on the safe side.
    pub(super) fn release_in_background(
        self: &Arc<Self>,
        claim: &Arc<ClaimRequest>,
        sent: Option<Boxed<Result<Claimed, StoreError>>>,
    ) {
        let (this, claim) = (self.clone(), claim.clone());
        let giving = in_background(&self.places, async move {
            if let Some(sent) = sent {
                // The result does not matter: after it, the request cannot arrive any more.
                let _ = this.within(None, sent).await;
            }
            this.release_held(&claim).await;
        });
        if !giving {
            self.left.fetch_add(1, Relaxed);
        }
    }

    /// Releases a claim.
    pub(super) async fn release_held(&self, claim: &ClaimRequest) {
        let release = || self.within(None, self.change(&claim.key, Change::Release(claim.owner)));
        if retried(RELEASES, release).await.is_err() {
            self.left.fetch_add(1, Relaxed);
        }
    }

    /// Records the end of a vanished call. One attempt is enough: the end of the lease has the same
    /// effect.
    pub(super) fn end_in_background(self: &Arc<Self>, key: Key, token: Token, end: End) {
        let this = self.clone();
        in_background(&self.places, async move {
            let _ = this.end(&key, token, &end).await;
        });
    }

    /// Records the end before the caller gets its answer. If the store stays unavailable, returns and
    /// retries in a task for [`TRIED`].
    pub(super) async fn record(self: Arc<Self>, key: Key, token: Token, end: End) -> Recorded {
        let recorded = retried(ENDS, || self.end(&key, token, &end)).await;
        if let Ok(true) = recorded {
            lock(&self.unrecorded).remove(&key);
            return Recorded::Yes;
        }
        {
            let mut keys = lock(&self.unrecorded);
            if keys.len() < MOST_UNRECORDED {
                keys.insert(key);
            }
        }
        if !recorded.is_err_and(|error| error.is_transient()) {
            return Recorded::No;
        }
        let this = self.clone();
        let later = in_background(&self.later, async move {
            let until = Instant::now() + TRIED;
            let pauses = iter::successors(Some(PAUSE * 2), |pause| Some((*pause * 2).min(LONGEST)))
                .take_while(|_| Instant::now() < until);
            sleep(PAUSE).await;
            if let Ok(true) = retried(pauses, || this.end(&key, token, &end)).await {
                lock(&this.unrecorded).remove(&key);
            }
        });
        if later { Recorded::Later } else { Recorded::No }
    }

    async fn end(&self, key: &Key, token: Token, end: &End) -> Result<bool, StoreError> {
        let end = Change::Finalize(token, Cow::Borrowed(end));
        self.within(None, self.change(key, end)).await
    }
}
