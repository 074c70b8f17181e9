//! Requests a claim from the store, where the reply may get lost.
use super::{Boxed, client::Gate};
use crate::store::{ClaimRequest, Claimed, StoreError, StoreErrorKind};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How many times a claim is sent.
const TIMES: u32 = 3;

/// The pause between two of them, times the number of those sent.
const PAUSE: Duration = Duration::from_millis(20);

/// One owner's claim, from the first request on. Dropped while it may be in force, it is released,
/// after the pending request has ended, so that the request cannot arrive after the release.
pub(super) struct ClaimAttempt {
    gate: Arc<Gate>,
    claim: Arc<ClaimRequest>,
    sent: Option<Boxed<Result<Claimed, StoreError>>>,
    may_hold: bool,
}

impl ClaimAttempt {
    pub(super) const fn new(gate: Arc<Gate>, claim: Arc<ClaimRequest>) -> Self {
        Self { gate, claim, sent: None, may_hold: false }
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
        let (gate, claim) = (self.gate.clone(), self.claim.clone());
        self.may_hold = true;
        let sent = self.sent.insert(Box::pin(async move { gate.claim(&claim).await }));
        let reply = self.gate.within(deadline, sent).await;
        self.sent = None;
        reply
    }

    /// The caller takes the claim and releases it from here on.
    pub(super) fn hand_over(mut self) {
        self.may_hold = false;
    }
}

impl Drop for ClaimAttempt {
    fn drop(&mut self) {
        if self.may_hold {
            self.gate.release_in_background(&self.claim, self.sent.take());
        }
    }
}
