//! Requests a claim from the store, where the reply may get lost.
use super::{Boxed, client::Client};
use crate::store::{ClaimRequest, Claimed, StoreError, StoreErrorKind};
use std::{future::poll_fn, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How many times a claim is sent.
const TIMES: u32 = 3;

/// The pause between two of them, times the number of those sent.
const PAUSE: Duration = Duration::from_millis(20);

/// One owner's claim, from the first request on. Dropped while it may be in force, it is released,
/// after the pending request has ended, so that the request cannot arrive after the release.
pub(super) struct ClaimAttempt<V> {
    remote: Arc<Client<V>>,
    claim: Arc<ClaimRequest>,
    sent: Option<Boxed<Result<Claimed, StoreError>>>,
    may_hold: bool,
}

impl<V: Send + 'static> ClaimAttempt<V> {
    pub(super) const fn new(remote: Arc<Client<V>>, claim: Arc<ClaimRequest>) -> Self {
        Self { remote, claim, sent: None, may_hold: false }
    }

    /// Claims; sends the same request again if the store does not reply. Returns when the request
    /// was sent that got the reply.
    pub(super) async fn claim(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<(Claimed, Instant), StoreError> {
        let mut times = 1;
        loop {
            let (at, may_hold) = (Instant::now(), self.may_hold);
            match self.send(deadline).await {
                Ok(claimed) => {
                    self.may_hold = matches!(claimed, Claimed::Run(_));
                    return Ok((claimed, at));
                }
                Err(error) => {
                    if error.kind() != StoreErrorKind::Uncertain {
                        self.may_hold = may_hold; // The request changed nothing.
                    }
                    let spent = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    if !error.is_transient() || times == TIMES || spent {
                        return Err(error);
                    }
                }
            }
            sleep(PAUSE * times).await;
            times += 1;
        }
    }

    async fn send(&mut self, deadline: Option<Instant>) -> Result<Claimed, StoreError> {
        let (store, claim) = (self.remote.store.clone(), self.claim.clone());
        self.may_hold = true;
        let sent: Boxed<_> = Box::pin(async move { store.claim(&claim).await });
        let sent = self.sent.insert(sent);
        let reply = poll_fn(|cx| sent.as_mut().poll(cx));
        let reply = self.remote.within(deadline, reply).await;
        self.sent = None;
        reply
    }

    /// The caller takes the claim and releases it from here on.
    pub(super) fn hand_over(mut self) {
        self.may_hold = false;
    }
}

impl<V> Drop for ClaimAttempt<V> {
    fn drop(&mut self) {
        if self.may_hold {
            let Client { store, releases, patience, .. } = &*self.remote;
            releases.release_in_background(store, &self.claim, *patience, self.sent.take());
        }
    }
}
