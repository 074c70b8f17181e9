//! Records how a call ended, now or later.
use super::{Boxed, Remote, in_background};
use crate::{
    protocol::Token,
    store::{ClaimRequest, End, StoreError},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How long recording is retried; the process keeps the response in memory meanwhile.
pub(crate) const TRIED: Duration = Duration::from_secs(600);

/// The pause between two attempts, at first and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Whether an end was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Yes,
    /// Not yet: a task retries.
    Later,
    /// No: the claim was lost, or the store refuses.
    No,
}

/// Records the end; if the store is unavailable, returns at once and retries in a task for
/// [`TRIED`].
pub(crate) fn record<V: Send + 'static>(
    remote: Arc<Remote<V>>,
    claim: Arc<ClaimRequest>,
    token: Token,
    end: End,
) -> Boxed<Recorded> {
    Box::pin(async move {
        match once(&remote, &claim, token, &end).await {
            Ok(true) => return Recorded::Yes,
            Err(error) if error.is_transient() => {}
            Ok(false) | Err(_) => return Recorded::No,
        }
        let Ok(place) = remote.later.clone().try_acquire_owned() else { return Recorded::No };
        in_background(async move {
            later(&remote, &claim, token, &end).await;
            drop(place);
        });
        Recorded::Later
    })
}

async fn once<V>(
    remote: &Remote<V>,
    claim: &ClaimRequest,
    token: Token,
    end: &End,
) -> Result<bool, StoreError> {
    remote.within(None, remote.store.finalise(&claim.key, token, end)).await
}

async fn later<V>(remote: &Remote<V>, claim: &ClaimRequest, token: Token, end: &End) {
    let until = Instant::now() + TRIED;
    let mut pause = PAUSE;
    while Instant::now() < until {
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
        match once(remote, claim, token, end).await {
            Err(error) if error.is_transient() => {}
            _ => return,
        }
    }
}
