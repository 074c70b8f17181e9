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
use tr_core::{BoxError, DeferFuture, Replay};

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
        #[pin]
        state: State<S, Req, A, V>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, Req, A, V>
    where
        S: Detachable<Req>,
        Req: Send,
        Req: 'static,
        A: Answers<Req, S::Response, V>,
        V: Clone,
        V: Send,
        V: 'static,
    {
        Known { end: Option<Result<S::Response, BoxError>> },
        Plain { #[pin] call: DeferFuture<S, Req> },
        Drive { drive: Attended<S, Req, A, V> },
        Wait { #[pin] wait: Wait<S, Req, A, V> },
    }
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
        Self { state: State::Known { end: Some(end) } }
    }

    pub(crate) const fn plain(service: S, req: Req) -> Self {
        Self { state: State::Plain { call: DeferFuture::waiting(service, req) } }
    }

    #[inline]
    pub(crate) const fn drive(drive: Drive<S, Req, A, V>) -> Self {
        Self { state: State::Drive { drive: Attended(Some(drive)) } }
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
        Self { state: State::Wait { wait } }
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
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Known { end } => {
                    return Poll::Ready(end.take().expect("polled after completion"));
                }
                StateProj::Plain { call } => return call.poll(cx).map_err(Into::into),
                StateProj::Drive { drive } => {
                    return drive.0.as_mut().expect("there until dropped").poll(cx);
                }
                StateProj::Wait { wait } => std::task::ready!(wait.poll(cx)),
            };
            state.set(next);
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
                return Poll::Ready(State::Known { end: Some(Err(WaitTimedOut::new().into())) });
            }
            return Poll::Pending;
        };
        let claim = match delivery {
            Delivery::Answer(answer) => {
                let end = answer.into_result().map(|kept| this.answers.load(kept, *this.replay));
                return Poll::Ready(State::Known { end: Some(end) });
            }
            Delivery::Claim(claim) => Some(claim),
            Delivery::Alone => None,
        };
        let (service, req) = this.call.take().expect("served once");
        let call = DeferFuture::waiting(service, req);
        let errand = this.errand.take().filter(|_| claim.is_some());
        let lead = errand.map(|errand| Box::new(Lead::new(*errand)));
        let drive = Drive::new(call, None, claim, *this.mutating, *this.answers, lead);
        Poll::Ready(State::Drive { drive: Attended(Some(drive)) })
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
            State::Known { .. } => f.field("state", &"known"),
            State::Plain { call } => f.field("state", call),
            State::Drive { drive } => f.field("state", drive),
            State::Wait { wait } => f.field("state", &wait.waiter),
        };
        f.finish()
    }
}
