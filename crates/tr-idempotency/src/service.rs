//! The service and its response future.
use crate::{
    bounds::{Answers, Detachable},
    claim::{Claims, Probing, Shared, State, Wait},
    end::Refusal,
    error::WaitTimedOut,
    local::claim::Delivery,
    remote::StoreCall,
    run::{Attended, DetachedCall},
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep_until},
};
use tower_service::Service;
use tr_core::{BoxError, DefaultPolicy, ToolOutcome, internal::Sharded};

/// Runs a call once per key and answers its duplicates from the record.
///
/// Always ready, since a replay needs no capacity of the inner service. The response future of a
/// first call polls the inner service's readiness and calls it.
pub struct Idempotency<S, A = DefaultPolicy, V = ToolOutcome> {
    claims: Claims<S, A, V>,
}

pin_project! {
    /// The response of an [`Idempotency`](crate::Idempotency).
    ///
    /// Dropped before its first poll, the call never happens. Dropped once the tool may have
    /// started, the call goes on in a task of the current tokio runtime and is recorded.
    #[must_use = "futures do nothing unless polled"]
    pub struct IdempotencyFuture<S, F, Req, R, A, V> {
        state: State<S, F, Req, R, A, V>,
    }
}

impl<S, A, V> Idempotency<S, A, V> {
    pub(crate) const fn new(inner: S, answers: A, shared: Sharded<Shared<V>>) -> Self {
        Self { claims: Claims { inner, answers, shared } }
    }

    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.claims.inner
    }
}

impl<S: Clone, A: Copy, V> Clone for Idempotency<S, A, V> {
    fn clone(&self) -> Self {
        Self { claims: self.claims.clone() }
    }
}

tr_core::debug_parts! { Idempotency<S: ::std::fmt::Debug, A, V>, |it|
    inner = it.claims.inner,
    config = it.claims.shared.config
}

impl<S, Req, A, V> Service<Req> for Idempotency<S, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = IdempotencyFuture<S, S::Future, Req, S::Response, A, V>;

    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        self.claims.shared.settle();
        IdempotencyFuture { state: State::start(&self.claims, req) }
    }
}

impl<S, Req, A, V> Future for IdempotencyFuture<S, S::Future, Req, S::Response, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    type Output = Result<S::Response, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = self.project().state;
        loop {
            match state {
                State::Known(end) => {
                    return Poll::Ready(end.take().expect("polled after completion"));
                }
                State::Running(Attended(call)) => return call.poll(cx),
                State::Wait(wait) => *state = ready!(State::after_wait(wait.as_mut(), cx)),
                State::Probing(probing) => *state = ready!(State::after_probe(probing, cx)),
            }
        }
    }
}

impl<S, Req, A, V> State<S, S::Future, Req, S::Response, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    fn after_probe(probing: &mut Probing<S, Req, A, V>, cx: &mut Context<'_>) -> Poll<Self> {
        let is_settled = ready!(probing.probe.as_mut().poll(cx));
        let (claims, mut req, refusal) = probing.call.take().expect("polled after completion");
        Poll::Ready(if is_settled {
            // The time stamp is stale after the probe.
            claims.answers.set_stamp(&mut req, None);
            Self::start(&claims, req)
        } else {
            Self::Known(Some(Err(Self::refuse(&claims, &req, refusal))))
        })
    }

    fn after_wait(wait: Pin<&mut Wait<S, Req, A, V>>, cx: &mut Context<'_>) -> Poll<Self> {
        let mut this = wait.project();
        let Poll::Ready(delivery) = this.waiter.poll(cx) else {
            if this.timer.is_none() {
                // Without a tokio runtime there is no timer.
                if Handle::try_current().is_err() {
                    return Poll::Pending;
                }
                let (claims, _) = this.call.as_ref().expect("polled after completion");
                let max_wait = claims.shared.config.max_wait;
                let until = *this.until.insert(Instant::now() + max_wait);
                let until = this.deadline.map_or(until, |deadline| deadline.min(until));
                this.timer.set(Some(sleep_until(until)));
            }
            ready!(this.timer.as_pin_mut().expect("it is set").poll(cx));
            let (claims, req) = this.call.as_ref().expect("polled after completion");
            let is_due = this.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let error = match is_due {
                true => WaitTimedOut::new().into(),
                false => Self::refuse(claims, req, Refusal::InFlight),
            };
            return Poll::Ready(Self::Known(Some(Err(error))));
        };
        let claim = match delivery {
            Delivery::Answer(answer) => {
                let (claims, _) = this.call.as_ref().expect("polled after completion");
                let (answers, replay) = (claims.answers, *this.replay);
                let end = answer.into_result(replay).map(|kept| answers.load(kept, replay));
                return Poll::Ready(Self::Known(Some(end)));
            }
            Delivery::Claim(claim) => Some(claim),
            Delivery::Alone => None,
        };
        let (claims, req) = this.call.take().expect("polled after completion");
        let store_request = this.store_request.take().filter(|_| claim.is_some());
        let store_call = store_request.map(|mut store_request| {
            // The time that it has waited counts.
            store_request.request.until = *this.until;
            Box::new(StoreCall::new(*store_request))
        });
        let (mutating, answers) = (*this.mutating, claims.answers);
        let call =
            DetachedCall::new(None, &claims.inner, req, claim, store_call, mutating, answers);
        Poll::Ready(Self::Running(Attended(call)))
    }
}

impl<S, F, Req, R, A, V> fmt::Debug for IdempotencyFuture<S, F, Req, R, A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("IdempotencyFuture");
        match &self.state {
            State::Known(_) => f.field("state", &"known"),
            State::Running(call) => f.field("state", call),
            State::Wait(wait) => f.field("state", &wait.waiter),
            State::Probing(_) => f.field("state", &"asking the probe"),
        };
        f.finish()
    }
}
