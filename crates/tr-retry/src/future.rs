//! Future types.
use crate::run::{Next, Run};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::time::{Instant, Sleep, sleep};
use tower_service::Service;
use tr_core::{BoxError, Classify, EffectOf, KeyOf, Progress, Repeat};

pin_project! {
    /// The response of a [`Retry`](crate::Retry).
    pub struct RetryFuture<S, Req, A>
    where
        S: Service<Req>,
    {
        #[pin]
        state: State<S::Future>,
        service: S,
        run: Run<Req, A>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Attempt { #[pin] attempt: F },
        Backoff { #[pin] sleep: Sleep },
        Readiness,
    }
}

impl<S: Service<Req>, Req, A> RetryFuture<S, Req, A> {
    pub(crate) const fn new(attempt: S::Future, service: S, run: Run<Req, A>) -> Self {
        Self { state: State::Attempt { attempt }, service, run }
    }
}

impl<S, Req, A> Future for RetryFuture<S, Req, A>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    A: Classify<S::Response> + EffectOf<Req> + KeyOf<Req> + Progress<Req> + Repeat<Req>,
{
    type Output = Result<S::Response, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Attempt { attempt } => {
                    let Poll::Ready(end) = attempt.poll(cx) else {
                        this.run.waits();
                        return Poll::Pending;
                    };
                    match this.run.ended(end.map_err(Into::into)) {
                        Next::Done(end) => return Poll::Ready(end),
                        Next::Retry(delay) if delay.is_zero() => {
                            this.state.set(State::Readiness);
                        }
                        Next::Retry(delay) => {
                            this.state.set(State::Backoff { sleep: sleep(delay) });
                        }
                    }
                }
                StateProj::Backoff { sleep } => {
                    ready!(sleep.poll(cx));
                    this.state.set(State::Readiness);
                }
                StateProj::Readiness => {
                    if let Err(error) = ready!(this.service.poll_ready(cx)) {
                        return Poll::Ready(Err(this.run.unready(error.into())));
                    }
                    let req = match this.run.begin(Instant::now()) {
                        Ok(req) => req,
                        Err(error) => return Poll::Ready(Err(error)),
                    };
                    this.state.set(State::Attempt { attempt: this.service.call(req) });
                }
            }
        }
    }
}

impl<S: Service<Req>, Req, A> fmt::Debug for RetryFuture<S, Req, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Attempt { .. } => "attempt",
            State::Backoff { .. } => "backoff",
            State::Readiness => "readiness",
        };
        f.debug_struct("RetryFuture")
            .field("state", &state)
            .field("retries", &self.run.retries())
            .finish_non_exhaustive()
    }
}
