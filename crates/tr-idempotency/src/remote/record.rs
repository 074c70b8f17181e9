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

/// Attempts before the caller gets its answer.
const TIMES: u32 = 3;

/// The pause between two of them.
const SHORT_PAUSE: Duration = Duration::from_millis(20);

/// The pause between two attempts after that, at first and at most.
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

/// Records the end before the caller gets its answer. If the store is unavailable [`TIMES`] times,
/// returns and retries in a task for [`TRIED`].
pub(crate) fn record<V: Send + 'static>(
    remote: Arc<Remote<V>>,
    claim: Arc<ClaimRequest>,
    token: Token,
    end: End,
) -> Boxed<Recorded> {
    Box::pin(async move {
        for times in 1..=TIMES {
            match once(&remote, &claim, token, &end).await {
                Ok(true) => {
                    remote.unrecorded.remove(&claim.key);
                    return Recorded::Yes;
                }
                Err(error) if error.is_transient() => {}
                Ok(false) | Err(_) => {
                    remote.unrecorded.add(claim.key);
                    return Recorded::No;
                }
            }
            if times < TIMES {
                sleep(SHORT_PAUSE * times).await;
            }
        }
        remote.unrecorded.add(claim.key);
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
            Ok(true) => return remote.unrecorded.remove(&claim.key),
            Ok(false) | Err(_) => return,
        }
    }
}
