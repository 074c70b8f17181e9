//! Future types.
use crate::{
    bounds::{Answers, Detachable},
    drive::{Attended, Drive},
    error::WaitTimedOut,
    lead::{Errand, Lead},
    local::wait::{Delivery, Waiter},
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::time::{Instant, Sleep, sleep_until};
use tr_core::{BoxError, Replay};

pin_project! {
    /// The response of an [`Idempotency`](crate::Idempotency).
    ///
    /// Dropped before its first poll, the call never happens. Dropped once the tool may have
    /// started, the call goes on in a task of the current tokio runtime and is recorded.
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
        Self { state: State::Wait(Box::pin(wait)) }
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
            }
        }
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
                let end = answer.into_result().map(|kept| this.answers.load(kept, *this.replay));
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
        };
        f.finish()
    }
}
