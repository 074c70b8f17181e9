//! Future types.
use crate::{
    attempts::{AttemptResult, Call, Next, Run},
    rare::Rare,
    shared::Held,
    wait::Wait,
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::time::Instant;
use tower_service::Service;
use tr_core::{
    BoxError, Classification, Classify, CoarseInstant, EffectOf, KeyOf, Progress, Repeat,
};

pin_project! {
    /// The response of a [`Retry`](crate::Retry).
    ///
    /// It holds little more than the first attempt: the state for retries is allocated when one
    /// fails.
    // This field order needs fewer moves than the order that the compiler would choose.
    #[repr(C)]
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryFuture<S, F, Req, A> {
        // `None` between two attempts.
        #[pin]
        attempt: Option<F>,
        // The copy from which each retry is made.
        spare: Option<Req>,
        // When this attempt started; read only if the attempt does not end at its first poll.
        started: Option<Instant>,
        later: Rare<Later>,
        inner: S,
        held: Held,
        policy: A,
    }
}

/// The state after the first failure.
struct Later {
    run: Run,
    wait: Wait,
}

impl<S, F, Req, A> RetryFuture<S, F, Req, A> {
    #[inline]
    pub(crate) const fn new(
        attempt: F,
        inner: S,
        held: Held,
        policy: A,
        spare: Option<Req>,
    ) -> Self {
        let (started, later) = (None, Rare::NOTHING);
        Self { attempt: Some(attempt), spare, started, later, inner, held, policy }
    }
}

type End<T> = Result<T, BoxError>;

impl<S, F, Req, A, T, E> Future for RetryFuture<S, F, Req, A>
where
    S: Service<Req, Response = T, Error = E, Future = F>,
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: Classify<T> + EffectOf<Req> + KeyOf<Req> + Progress<Req> + Repeat<Req>,
{
    type Output = End<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.later.is_there() {
            return Poll::Ready(ready!(self.poll_retry(cx)));
        }
        let this = self.as_mut().project();
        let first = this.attempt.as_pin_mut().expect("the first attempt is running");
        match first.poll(cx) {
            Poll::Ready(Ok(res)) => {
                let seen = this.policy.classify(Ok(&res));
                if seen.verdict.is_success() {
                    if let Some(budget) = this.held.budget() {
                        budget.success();
                    }
                    return Poll::Ready(Ok(res));
                }
                let result = self.as_mut().judge(seen);
                Poll::Ready(ready!(self.conclude(result, Ok(res), cx)))
            }
            Poll::Ready(Err(error)) => {
                let error = error.into();
                let seen = this.policy.classify(Err(&*error));
                let result = self.as_mut().judge(seen);
                Poll::Ready(ready!(self.conclude(result, Err(error), cx)))
            }
            Poll::Pending => {
                // An attempt that ends at its first poll needs no clock.
                this.started.get_or_insert_with(Instant::now);
                Poll::Pending
            }
        }
    }
}

impl<S, F, Req, A> RetryFuture<S, F, Req, A>
where
    S: Service<Req, Future = F>,
    F: Future<Output = Result<S::Response, S::Error>>,
    S::Error: Into<BoxError>,
    A: Classify<S::Response> + EffectOf<Req> + KeyOf<Req> + Progress<Req> + Repeat<Req>,
{
    /// The first attempt's end, unless another attempt follows.
    #[cold]
    fn conclude(
        mut self: Pin<&mut Self>,
        result: AttemptResult,
        end: End<S::Response>,
        cx: &mut Context<'_>,
    ) -> Poll<End<S::Response>> {
        match self.as_mut().follow(result, end) {
            Some(end) => Poll::Ready(end),
            None => self.poll_retry(cx),
        }
    }

    /// After a failure: backoff, readiness, the next attempt. If the wait is cut short, the call ends.
    #[cold]
    fn poll_retry(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End<S::Response>> {
        loop {
            let mut this = self.as_mut().project();
            if this.attempt.is_none() {
                let Later { run, wait } = this.later.get_mut().expect("an attempt failed");
                let call = Call::of(this.held, this.policy, this.spare.as_ref());
                if wait.is_cancelled(cx) {
                    return Poll::Ready(Err(call.cancelled(run)));
                }
                ready!(wait.poll_backoff(cx));
                match this.inner.poll_ready(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Err(call.unready(run, error.into())));
                    }
                    Poll::Pending => {
                        ready!(wait.poll_patience(|| call.latest(run), cx));
                        return Poll::Ready(Err(call.overdue(run, Instant::now())));
                    }
                }
                let now = Instant::now();
                let copy = match call.begin(run, now) {
                    Ok(copy) => copy,
                    Err(error) => return Poll::Ready(Err(error)),
                };
                // If the request cannot be copied again, the last attempt gets the original.
                let mut req = copy.or_else(|| this.spare.take()).expect("a retry has a spare");
                this.policy.set_attempt(&mut req, run.attempt());
                this.policy.set_stamp(&mut req, Some(CoarseInstant::at(now.into_std())));
                *this.started = Some(now);
                this.attempt.set(Some(this.inner.call(req)));
            }
            let attempt = this.attempt.as_pin_mut().expect("an attempt is running");
            let end = ready!(attempt.poll(cx)).map_err(Into::into);
            let seen = match &end {
                Ok(res) => this.policy.classify(Ok(res)),
                Err(error) => this.policy.classify(Err(&**error)),
            };
            let result = self.as_mut().judge(seen);
            if let Some(end) = self.as_mut().follow(result, end) {
                return Poll::Ready(end);
            }
        }
    }

    /// Decides what follows an end that is not a first-attempt success.
    #[cold]
    fn judge(self: Pin<&mut Self>, seen: Classification<'_>) -> AttemptResult {
        let this = self.project();
        let now = Instant::now();
        let started = this.started.take().unwrap_or(now);
        let call = Call::of(this.held, this.policy, this.spare.as_ref());
        let open = || Later { run: call.open(started), wait: Wait::NONE };
        call.judge(&mut this.later.get_or_insert_with(open).run, seen, started, now)
    }

    /// The call's end, unless another attempt follows.
    #[cold]
    fn follow(
        self: Pin<&mut Self>,
        result: AttemptResult,
        end: End<S::Response>,
    ) -> Option<End<S::Response>> {
        let mut this = self.project();
        let later = this.later.get_mut().expect("set by `judge`");
        let call = Call::of(this.held, this.policy, this.spare.as_ref());
        match call.follow(&mut later.run, result, end) {
            Next::Done(end) => Some(end),
            Next::Retry(delay) => {
                later.wait = Wait::of(delay, call.cancellation());
                // Dropped before the backoff, because it may hold a connection.
                this.attempt.set(None);
                None
            }
        }
    }
}

impl<S, F, Req, A> fmt::Debug for RetryFuture<S, F, Req, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let later = self.later.get();
        let state = match (&self.attempt, later.map(|later| later.wait.is_backoff())) {
            (Some(_), _) => "attempt",
            (None, Some(true)) => "backoff",
            (None, _) => "readiness",
        };
        f.debug_struct("RetryFuture")
            .field("state", &state)
            .field("retries", &later.map_or(0, |later| later.run.attempt()))
            .finish_non_exhaustive()
    }
}
