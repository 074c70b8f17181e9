//! A claim that the store has granted: renewed while the call runs, and recorded at its end, now or
//! later; otherwise released or lost.
use super::{
    Boxed, Lease, LeaseCheck, Recorded, TRIED,
    client::{Client, in_background},
};
use crate::{
    codec::Place,
    end::{Failure, Run, State},
    failure::RecordedFailure,
    protocol::{Millis, Token},
    store::{ClaimRequest, End, Grant, StoreError},
};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tr_core::{Classification, Ran, Verdict, code};

/// After this many late renewals in a row, a call is not started.
const LATE: u32 = 3;

/// The lease of a claim, renewed while the call runs.
pub(crate) struct Held<V> {
    remote: Arc<Client<V>>,
    claim: Arc<ClaimRequest>,
    token: Token,
    pub(super) earlier: Vec<Run>,
    /// When the lease ends, counted from before the request was sent.
    ours_until: Instant,
    /// Fires when the next renewal is due.
    timer: Pin<Box<Sleep>>,
    renewal: Option<(Instant, Boxed<Result<bool, StoreError>>)>,
    /// Renewals in a row whose reply came after the renewed lease had ended.
    late: u32,
    lost: bool,
    started: bool,
    ended: bool,
}

impl<V: Send + 'static> Held<V> {
    pub(super) fn new(
        remote: Arc<Client<V>>,
        claim: Arc<ClaimRequest>,
        grant: &Grant,
        at: Instant,
        earlier: Vec<Run>,
    ) -> Self {
        let left = Duration::from_millis(grant.lease_left);
        Self {
            remote,
            claim,
            token: grant.token,
            earlier,
            ours_until: at + left,
            timer: Box::pin(sleep_until(at + left / 3)),
            renewal: None,
            late: 0,
            lost: false,
            started: false,
            ended: false,
        }
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
        let Self { remote, claim, token, .. } = self;
        let (remote, claim, token) = (remote.clone(), claim.clone(), *token);
        let renewal: Boxed<_> = Box::pin(async move {
            let renew = remote.store.renew(&claim.key, token, claim.ttls.inflight);
            remote.within(None, renew).await
        });
        self.renewal = Some((Instant::now(), renewal));
    }
}

impl<V: Send + 'static> Lease<V> for Held<V> {
    fn epoch(&self) -> u64 {
        self.token.epoch
    }

    fn set_started(&mut self, started: bool) {
        self.started = started;
    }

    fn keep(&mut self, cx: &mut Context<'_>) {
        while self.poll_renew(cx).is_ready() {}
    }

    fn poll_lease(&mut self, cx: &mut Context<'_>) -> Poll<LeaseCheck> {
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

    fn finish(mut self: Box<Self>, state: &State<V>, ttl: Millis) -> (Boxed<Recorded>, bool) {
        let written = self.remote.format.write(&self.place(), state, ttl, &self.earlier, None);
        self.ended = true;
        let end = End { state: written.state, ttl };
        let (remote, claim) = (self.remote.clone(), self.claim.clone());
        (record(remote, claim, self.token, end), written.whole)
    }

    fn forget(mut self: Box<Self>) -> Boxed<Recorded> {
        self.ended = true;
        let (remote, claim) = (self.remote.clone(), self.claim.clone());
        Box::pin(async move {
            remote.releases.release(&*remote.store, &claim, remote.patience).await;
            Recorded::No
        })
    }
}

impl<V> Held<V> {
    /// The identity that its end is sealed with.
    fn place(&self) -> Place {
        Place::of_claim(&self.claim, self.token)
    }

    /// The state of a call whose future was dropped or panicked during the run.
    fn vanished() -> State<V> {
        let end = Classification::new(Verdict::Cancelled, Ran::Unknown, code::OUTCOME_UNKNOWN);
        let why = "the call was dropped during its run, or it panicked";
        let recorded = Arc::new(RecordedFailure::new(end, Some(why.into())));
        State::Unknown(Some(Failure::of_error(recorded)))
    }
}

impl<V> Drop for Held<V> {
    fn drop(&mut self) {
        if self.ended || self.lost {
            return;
        }
        let Client { store, releases, patience, format, .. } = &*self.remote;
        let patience = *patience;
        if !self.started {
            return releases.release_in_background::<()>(store, &self.claim, patience, None);
        }
        // One attempt is enough: the end of the lease has the same effect.
        let Some(place) = releases.place() else { return };
        let ttl = self.claim.ttls.unknown;
        let written = format.write(&self.place(), &Self::vanished(), ttl, &self.earlier, None);
        let end = End { state: written.state, ttl };
        let (store, claim, token) = (store.clone(), self.claim.clone(), self.token);
        in_background(async move {
            let _ = timeout(patience, store.finalise(&claim.key, token, &end)).await;
            drop(place);
        });
    }
}

/// Attempts before the caller gets its answer.
const TIMES: u32 = 3;

/// The pause between two of them.
const SHORT_PAUSE: Duration = Duration::from_millis(20);

/// The pause between two attempts after that, at first and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Records the end before the caller gets its answer. If the store is unavailable [`TIMES`] times,
/// returns and retries in a task for [`TRIED`].
fn record<V: Send + 'static>(
    remote: Arc<Client<V>>,
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
    remote: &Client<V>,
    claim: &ClaimRequest,
    token: Token,
    end: &End,
) -> Result<bool, StoreError> {
    remote.within(None, remote.store.finalise(&claim.key, token, end)).await
}

async fn later<V>(remote: &Client<V>, claim: &ClaimRequest, token: Token, end: &End) {
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
