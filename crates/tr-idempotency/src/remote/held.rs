//! A claim in the store: requested, where the reply may get lost; renewed while the call runs; and
//! recorded at its end, now or later; otherwise released or lost.
use super::{Boxed, Recorded, client::Client};
use crate::{
    codec::Place,
    end::{Run, State, unknown},
    protocol::{Millis, Token},
    store::{Change, ClaimRequest, Claimed, End, StoreError, StoreErrorKind},
};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tr_core::Verdict;

/// How many times a claim is sent.
const TIMES: u32 = 3;

/// The pause between two of them, times the number of those sent.
const PAUSE: Duration = Duration::from_millis(20);

/// After this many late renewals in a row, a call is not started.
const LATE: u32 = 3;

/// One owner's claim, from the first request on, and its lease, renewed while the call runs.
///
/// Dropped while it may be in force and before the call was started, it is released, after the
/// pending request has ended, so that the request cannot arrive after the release. Dropped after
/// that, the call is recorded as unknown. Each happens in a task of its own; without a runtime, the
/// end of the lease does it.
pub(crate) struct Held<V> {
    remote: Arc<Client<V>>,
    claim: Arc<ClaimRequest>,
    /// The pending request for the claim.
    sent: Option<Boxed<Result<Claimed, StoreError>>>,
    may_hold: bool,
    /// Once it is granted.
    pub(crate) token: Token,
    /// The runs before this one.
    pub(super) earlier: Vec<Run>,
    /// When the lease ends, counted from before the request was sent.
    ours_until: Instant,
    /// Fires when the next renewal is due.
    timer: Pin<Box<Sleep>>,
    renewal: Option<(Instant, Boxed<Result<bool, StoreError>>)>,
    /// Renewals in a row whose reply came after the renewed lease had ended.
    late: u32,
    lost: bool,
    /// The tool may have started.
    pub(crate) started: bool,
}

/// Whether a call may start.
pub(crate) enum LeaseCheck {
    /// The claim is ours.
    Held,
    /// Another process has the claim.
    Lost,
    /// The store is unavailable.
    Failed(StoreError),
}

impl<V> Held<V> {
    pub(super) fn new(remote: Arc<Client<V>>, claim: Arc<ClaimRequest>) -> Self {
        let now = Instant::now();
        Self {
            remote,
            claim,
            sent: None,
            may_hold: false,
            token: Token { epoch: 0, owner: Token::BY_HAND },
            earlier: Vec::new(),
            ours_until: now,
            timer: Box::pin(sleep_until(now)),
            renewal: None,
            late: 0,
            lost: false,
            started: false,
        }
    }

    /// Claims; sends the same request again if the store does not reply. The lease counts from when the
    /// request was sent that got the reply.
    pub(super) async fn claim(&mut self, deadline: Option<Instant>) -> Result<Claimed, StoreError> {
        let mut times = 1;
        loop {
            let (at, may_hold) = (Instant::now(), self.may_hold);
            match self.send(deadline).await {
                Ok(claimed) => {
                    self.may_hold = false;
                    if let Claimed::Run(grant) = &claimed {
                        let left = Duration::from_millis(grant.lease_left);
                        (self.may_hold, self.token, self.ours_until) =
                            (true, grant.token, at + left);
                        self.timer.as_mut().reset(at + left / 3);
                    }
                    return Ok(claimed);
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
        let (gate, claim) = (self.remote.gate.clone(), self.claim.clone());
        self.may_hold = true;
        let sent = self.sent.insert(Box::pin(async move { gate.claim(&claim).await }));
        let reply = self.remote.gate.within(deadline, sent).await;
        self.sent = None;
        reply
    }

    /// Renews the lease after a third of its length. Ready with the result of one renewal; poll
    /// again for the next.
    fn poll_renew(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StoreError>> {
        if self.lost {
            return Poll::Pending;
        }
        if self.renewal.is_none() {
            ready!(self.timer.as_mut().poll(cx));
            self.renew();
        }
        let Some((at, renewal)) = &mut self.renewal else { return Poll::Pending };
        let (at, end) = (*at, ready!(renewal.as_mut().poll(cx)));
        self.renewal = None;
        let lease = Duration::from_millis(self.claim.ttls.inflight);
        // Sooner after a failure: the lease may not have ended yet.
        let next = if end.is_ok() { lease / 3 } else { lease / 12 };
        self.timer.as_mut().reset(at.max(Instant::now()) + next.max(Duration::from_millis(1)));
        match end {
            Ok(true) => self.ours_until = at + lease,
            Ok(false) => self.lost = true,
            Err(error) => return Poll::Ready(Err(error)),
        }
        Poll::Ready(Ok(()))
    }

    #[cold]
    fn too_late(&self) -> StoreError {
        let lease = self.claim.ttls.inflight;
        StoreError::uncertain(format!(
            "{LATE} replies in a row came after the lease of {lease} ms had ended: \
             raise `inflight_ttl` of the layer or the tool"
        ))
    }

    fn renew(&mut self) {
        let (gate, claim, token) = (self.remote.gate.clone(), self.claim.clone(), self.token);
        let renewal: Boxed<_> = Box::pin(async move {
            let renew = Change::Renew(token, claim.ttls.inflight);
            gate.within(None, gate.change(&claim.key, renew)).await
        });
        self.renewal = Some((Instant::now(), renewal));
    }

    /// Polls the renewal, so that the task wakes when the next one is due.
    pub(crate) fn keep(&mut self, cx: &mut Context<'_>) {
        while self.poll_renew(cx).is_ready() {}
    }

    /// Whether the claim is still held, so that the call may start now. If the lease has ended
    /// meanwhile, it is renewed first, a few times.
    pub(crate) fn poll_lease(&mut self, cx: &mut Context<'_>) -> Poll<LeaseCheck> {
        loop {
            let renewed = self.poll_renew(cx);
            if self.lost {
                return Poll::Ready(LeaseCheck::Lost);
            }
            if Instant::now() < self.ours_until {
                self.late = 0;
                return Poll::Ready(LeaseCheck::Held);
            }
            match renewed {
                Poll::Pending if self.renewal.is_some() => return Poll::Pending,
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.late += 1,
                Poll::Ready(Err(error)) => return Poll::Ready(LeaseCheck::Failed(error)),
            }
            if self.late == LATE {
                return Poll::Ready(LeaseCheck::Failed(self.too_late()));
            }
            self.renew();
        }
    }

    /// Records the end, unless it is not to be kept. Also returns whether a duplicate will get the whole response.
    pub(crate) fn finish(mut self, state: &State<V>, ttl: Millis) -> (Boxed<Recorded>, bool) {
        if ttl == 0 {
            return (self.forget(), false);
        }
        let (end, whole) = self.written(state, ttl);
        self.may_hold = false;
        let recording = self.remote.gate.clone().record(self.claim.key, self.token, end);
        (Box::pin(recording), whole)
    }

    /// Deletes the record of a call whose repeat is safe: there is no response to keep.
    pub(crate) fn forget(mut self) -> Boxed<Recorded> {
        self.may_hold = false;
        let (gate, claim) = (self.remote.gate.clone(), self.claim.clone());
        Box::pin(async move {
            gate.release_held(&claim).await;
            Recorded::No
        })
    }

    /// The end as the store keeps it, and whether that has the whole response.
    fn written(&self, state: &State<V>, ttl: Millis) -> (End, bool) {
        let place = Place::of_claim(&self.claim, self.token);
        self.remote.format.write(&place, state, ttl, &self.earlier, None)
    }
}

impl<V> Drop for Held<V> {
    fn drop(&mut self) {
        if !self.may_hold || self.lost {
            return;
        }
        let (gate, claim) = (&self.remote.gate, &self.claim);
        if self.started {
            let why = "the call was dropped during its run, or it panicked";
            let vanished = unknown(Verdict::Cancelled, why);
            let (end, _) = self.written(&vanished, claim.ttls.unknown);
            gate.end_in_background(claim.key, self.token, end);
        } else {
            gate.release_in_background(claim, self.sent.take());
        }
    }
}
