//! Future types.
use crate::{
    bounds::{Answers, Detachable},
    detached_call::{Attended, DetachedCall},
    error::WaitTimedOut,
    local::{
        Refusal,
        wait::{Delivery, Waiter},
    },
    remote::Boxed,
    service::Idempotency,
    store_call::{StoreCall, StoreRequest},
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    runtime::Handle,
    time::{Instant, Sleep, sleep_until},
};
use tower_service::Service;
use tr_core::{BoxError, Replay};

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

/// The response of a call of `S`.
pub(crate) type FutureOf<S, Req, A, V> =
    IdempotencyFuture<S, <S as Service<Req>>::Future, Req, <S as Service<Req>>::Response, A, V>;

type StateOf<S, Req, A, V> =
    State<S, <S as Service<Req>>::Future, Req, <S as Service<Req>>::Response, A, V>;

/// Small, since every outer layer moves it: large states are boxed.
enum State<S, F, Req, R, A, V> {
    Known(Option<Result<R, BoxError>>),
    Running(Attended<S, F, Req, R, A, V>),
    Wait(Pin<Box<Wait<S, Req, A, V>>>),
    Probing(Box<Probing<S, Req, A, V>>),
}

/// Waits for the probe, then calls again or is refused.
struct Probing<S, Req, A, V> {
    /// Resolves to whether the record has been settled.
    probe: Boxed<bool>,
    call: Option<(Idempotency<S, A, V>, Req, Refusal)>,
}

pin_project! {
    /// Waits for another caller's run, and runs the call itself if that run never started.
    struct Wait<S, Req, A, V> {
        waiter: Waiter<V>,
        replay: Replay,
        call: Option<(Idempotency<S, A, V>, Req)>,
        mutating: bool,
        answers: A,
        // The deadline of this call.
        deadline: Option<Instant>,
        // The request to the store, for when the claim passes to this caller.
        store_request: Option<Box<StoreRequest<V>>>,
        // When `max_wait` is over; set once the wait starts.
        until: Option<Instant>,
        #[pin]
        timer: Option<Sleep>,
    }
}

impl<S, F, Req, R, A, V> IdempotencyFuture<S, F, Req, R, A, V> {
    pub(crate) const fn known(end: Result<R, BoxError>) -> Self {
        Self { state: State::Known(Some(end)) }
    }

    #[inline]
    pub(crate) const fn detached(call: DetachedCall<S, F, Req, R, A, V>) -> Self {
        Self { state: State::Running(Attended(call)) }
    }

    pub(crate) fn probing(
        probe: Boxed<bool>,
        service: Idempotency<S, A, V>,
        req: Req,
        refusal: Refusal,
    ) -> Self {
        let call = Some((service, req, refusal));
        Self { state: State::Probing(Box::new(Probing { probe, call })) }
    }

    pub(crate) fn wait(
        waiter: Waiter<V>,
        replay: Replay,
        call: (Idempotency<S, A, V>, Req),
        mutating: bool,
        answers: A,
        deadline: Option<std::time::Instant>,
        store_request: Option<Box<StoreRequest<V>>>,
    ) -> Self {
        let (call, until, timer) = (Some(call), None, None);
        let deadline = deadline.map(Instant::from_std);
        let wait =
            Wait { waiter, replay, call, mutating, answers, deadline, store_request, until, timer };
        Self { state: State::Wait(Pin::from(Box::new(wait))) }
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
                State::Wait(wait) => *state = std::task::ready!(wait.as_mut().poll(cx)),
                State::Probing(probing) => *state = std::task::ready!(probing.poll(cx)),
            }
        }
    }
}

impl<S, Req, A, V> Probing<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<StateOf<S, Req, A, V>> {
        let is_settled = std::task::ready!(self.probe.as_mut().poll(cx));
        let (mut service, mut req, refusal) = self.call.take().expect("polled after completion");
        Poll::Ready(if is_settled {
            // The time stamp is stale after the probe.
            service.answers().set_stamp(&mut req, None);
            service.call(req).state
        } else {
            State::Known(Some(Err(service.refuse(&req, refusal))))
        })
    }
}

impl<S, Req, A, V> Wait<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    /// The state after the wait.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StateOf<S, Req, A, V>> {
        let mut this = self.project();
        let Poll::Ready(delivery) = this.waiter.poll(cx) else {
            if this.timer.is_none() {
                // Without a tokio runtime there is no timer.
                if Handle::try_current().is_err() {
                    return Poll::Pending;
                }
                let (service, _) = this.call.as_ref().expect("polled after completion");
                let until = *this.until.insert(service.waits_until());
                let until = this.deadline.map_or(until, |deadline| deadline.min(until));
                this.timer.set(Some(sleep_until(until)));
            }
            std::task::ready!(this.timer.as_pin_mut().expect("it is set").poll(cx));
            let (service, req) = this.call.as_ref().expect("polled after completion");
            let is_due = this.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let error = match is_due {
                true => WaitTimedOut::new().into(),
                false => service.refuse(req, Refusal::InFlight),
            };
            return Poll::Ready(State::Known(Some(Err(error))));
        };
        let claim = match delivery {
            Delivery::Answer(answer) => {
                let end = answer
                    .into_result(*this.replay)
                    .map(|kept| this.answers.load(kept, *this.replay));
                return Poll::Ready(State::Known(Some(end)));
            }
            Delivery::Claim(claim) => Some(claim),
            Delivery::Alone => None,
        };
        let (service, req) = this.call.take().expect("polled after completion");
        let store_request = this.store_request.take().filter(|_| claim.is_some());
        let store_call = store_request.map(|mut store_request| {
            // The time that it has waited counts.
            store_request.request.until = *this.until;
            Box::new(StoreCall::new(*store_request))
        });
        let (mutating, answers) = (*this.mutating, *this.answers);
        let call =
            DetachedCall::new(None, service.get_ref(), req, claim, store_call, mutating, answers);
        Poll::Ready(State::Running(Attended(call)))
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
