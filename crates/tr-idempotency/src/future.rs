//! Future types.
use crate::{
    bounds::{Answers, Detachable},
    drive::{Attended, Drive},
    error::WaitTimedOut,
    lead::{Errand, Lead},
    local::{
        Refusal,
        wait::{Delivery, Waiter},
    },
    remote::Boxed,
    service::Idempotency,
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;
use tr_core::{BoxError, Replay};

pin_project! {
    /// The response of an [`Idempotency`](crate::Idempotency).
    ///
    /// Dropped before its first poll, the call never happens. Dropped once the tool may have
    /// started, the call goes on in a task of the current tokio runtime and is recorded.
    #[must_use = "futures do nothing unless polled"]
    pub struct IdempotencyFuture<S, Req, A, V>
    where
        S: Detachable<Req>,
        Req: Send,
        Req: 'static,
        A: Answers<Req, S::Response, V>,
        V: Clone,
        V: Send,
        V: 'static,
    {
        state: State<S, Req, A, V>,
    }
}

/// Small, since every layer further out moves it: what is large lies elsewhere.
enum State<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    Known(Option<Result<S::Response, BoxError>>),
    Drive(Attended<S, Req, A, V>),
    Wait(Pin<Box<Wait<S, Req, A, V>>>),
    Inquire(Box<Inquire<S, Req, A, V>>),
}

/// Waits for what a probe finds, and then calls again or is refused.
struct Inquire<S, Req, A, V> {
    /// Whether the record says something else now.
    inquiry: Boxed<bool>,
    call: Option<(Idempotency<S, A, V>, Req, Refusal)>,
}

pin_project! {
    /// Waits for another caller's run, ready to run the call itself if that one never started.
    struct Wait<S, Req, A, V> {
        waiter: Waiter<V>,
        replay: Replay,
        call: Option<(S, Req)>,
        mutating: bool,
        answers: A,
        deadline: Option<Instant>,
        // What to ask of the store, should the claim pass to this caller.
        errand: Option<Box<Errand<V>>>,
        #[pin]
        timer: Option<Sleep>,
    }
}

impl<S, Req, A, V> IdempotencyFuture<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    pub(crate) const fn known(end: Result<S::Response, BoxError>) -> Self {
        Self { state: State::Known(Some(end)) }
    }

    #[inline]
    pub(crate) const fn drive(drive: Drive<S, Req, A, V>) -> Self {
        Self { state: State::Drive(Attended(drive)) }
    }

    pub(crate) fn inquire(
        inquiry: Boxed<bool>,
        service: Idempotency<S, A, V>,
        req: Req,
        refusal: Refusal,
    ) -> Self {
        let call = Some((service, req, refusal));
        Self { state: State::Inquire(Box::new(Inquire { inquiry, call })) }
    }

    pub(crate) fn wait(
        waiter: Waiter<V>,
        replay: Replay,
        call: (S, Req),
        mutating: bool,
        answers: A,
        deadline: Option<std::time::Instant>,
        errand: Option<Box<Errand<V>>>,
    ) -> Self {
        let (call, timer) = (Some(call), None);
        let deadline = deadline.map(Instant::from_std);
        let wait = Wait { waiter, replay, call, mutating, answers, deadline, errand, timer };
        Self { state: State::Wait(Pin::from(Box::new(wait))) }
    }
}

impl<S, Req, A, V> Future for IdempotencyFuture<S, Req, A, V>
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
                State::Drive(Attended(drive)) => return drive.poll(cx),
                State::Wait(wait) => *state = std::task::ready!(wait.as_mut().poll(cx)),
                State::Inquire(inquire) => *state = std::task::ready!(inquire.poll(cx)),
            }
        }
    }
}

impl<S, Req, A, V> Inquire<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<State<S, Req, A, V>> {
        let is_settled = std::task::ready!(self.inquiry.as_mut().poll(cx));
        let (mut service, mut req, refusal) = self.call.take().expect("answered once");
        Poll::Ready(if is_settled {
            // By now it is stale.
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
    /// What comes after the wait.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<State<S, Req, A, V>> {
        let mut this = self.project();
        let Poll::Ready(delivery) = this.waiter.poll(cx) else {
            if let Some(deadline) = this.deadline.take() {
                this.timer.set(Some(sleep_until(deadline)));
            }
            if let Some(timer) = this.timer.as_pin_mut() {
                std::task::ready!(timer.poll(cx));
                return Poll::Ready(State::Known(Some(Err(WaitTimedOut::new().into()))));
            }
            return Poll::Pending;
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
        let (service, req) = this.call.take().expect("served once");
        let errand = this.errand.take().filter(|_| claim.is_some());
        let lead = errand.map(|errand| Box::new(Lead::new(*errand)));
        let (mutating, answers) = (*this.mutating, *this.answers);
        let drive = Drive::new(None, &service, req, claim, lead, mutating, answers);
        Poll::Ready(State::Drive(Attended(drive)))
    }
}

impl<S, Req, A, V> fmt::Debug for IdempotencyFuture<S, Req, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("IdempotencyFuture");
        match &self.state {
            State::Known(_) => f.field("state", &"known"),
            State::Drive(drive) => f.field("state", drive),
            State::Wait(wait) => f.field("state", &wait.waiter),
            State::Inquire(_) => f.field("state", &"asking the probe"),
        };
        f.finish()
    }
}
