//! Future types.
use crate::{
    attempts::{Call, Next, Run},
    shared::Settings,
};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower_service::Service;
use tr_policy::{
    BoxError, CloneRequest, RequestPolicy, ResponsePolicy,
    internal::{CoarseInstant, Held},
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
        #[pin]
        state: State<F>,
        // The copy from which each retry is made.
        spare: Option<Req>,
        // When this attempt started; read only if the attempt does not end at its first poll.
        started: Option<Instant>,
        // Set by the first failure. The `Arc` is never shared: dropping an empty one is one comparison,
        // where an empty `Box` costs every call twelve instructions.
        retries: Option<Arc<Retries>>,
        inner: S,
        held: Held<Settings>,
        policy: A,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        // An attempt runs.
        Calling { #[pin] attempt: F },
        // The backoff before the next attempt.
        Waiting,
        // The inner service gets ready for the next attempt.
        Retrying,
    }
}

/// What is kept after the first failure.
struct Retries {
    run: Run,
    /// The end of the backoff, or the limit of the wait for readiness, set once that is pending.
    timer: Option<Pin<Box<Sleep>>>,
    /// Completes when the caller cancels the call; polled between two attempts.
    cancelled: Option<Cancelled>,
}

/// A mutex only to be `Sync`: it is never locked.
type Cancelled = Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>;

type End<T> = Result<T, BoxError>;

impl<S, F, Req, A> RetryFuture<S, F, Req, A> {
    #[inline]
    pub(crate) const fn new(
        attempt: F,
        inner: S,
        held: Held<Settings>,
        policy: A,
        spare: Option<Req>,
    ) -> Self {
        let state = State::Calling { attempt };
        Self { state, spare, started: None, retries: None, inner, held, policy }
    }
}

impl<S, F, Req, A, T, E> Future for RetryFuture<S, F, Req, A>
where
    S: Service<Req, Response = T, Error = E, Future = F>,
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: RequestPolicy<Req> + ResponsePolicy<T> + CloneRequest<Req>,
{
    type Output = End<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        // Most calls end here, with their first attempt.
        if this.retries.is_none()
            && let StateProj::Calling { attempt } = this.state.project()
        {
            let end = match attempt.poll(cx) {
                Poll::Pending => {
                    this.started.get_or_insert_with(Instant::now);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(res)) => {
                    if this.policy.classify(Ok(&res)).verdict.is_success() {
                        if let Some(budget) = &this.held.budget {
                            budget.success();
                        }
                        return Poll::Ready(Ok(res));
                    }
                    Ok(res)
                }
                Poll::Ready(Err(error)) => Err(error.into()),
            };
            if let Some(end) = self.as_mut().conclude(end) {
                return Poll::Ready(end);
            }
        }
        self.poll_retry(cx)
    }
}

impl<S, F, Req, A> RetryFuture<S, F, Req, A>
where
    S: Service<Req, Future = F>,
    F: Future<Output = Result<S::Response, S::Error>>,
    S::Error: Into<BoxError>,
    A: RequestPolicy<Req> + ResponsePolicy<S::Response> + CloneRequest<Req>,
{
    /// The call's end after this end of an attempt, unless another attempt follows.
    #[cold]
    fn conclude(self: Pin<&mut Self>, end: End<S::Response>) -> Option<End<S::Response>> {
        let mut this = self.project();
        let now = Instant::now();
        let started = this.started.take().unwrap_or(now);
        let call = Call { settings: this.held, policy: this.policy, spare: this.spare.as_ref() };
        let open = || Arc::new(Retries { run: call.open(started), timer: None, cancelled: None });
        let retries = Arc::get_mut(this.retries.get_or_insert_with(open)).expect("never shared");
        match call.after(&mut retries.run, end, started, now) {
            Next::Done(end) => Some(end),
            Next::Retry(delay) => {
                retries.cancelled = call.cancellation().map(Mutex::new);
                // This drops the attempt before the backoff: it may hold a connection.
                this.state.set(State::Waiting);
                retries.timer = (!delay.is_zero()).then(|| Box::pin(sleep(delay)));
                None
            }
        }
    }

    #[cold]
    fn poll_retry(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End<S::Response>> {
        loop {
            let this = self.as_mut().project();
            let StateProj::Calling { attempt } = this.state.project() else {
                ready!(self.as_mut().poll_next(cx))?;
                continue;
            };
            let end = ready!(attempt.poll(cx)).map_err(Into::into);
            if let Some(end) = self.as_mut().conclude(end) {
                return Poll::Ready(end);
            }
        }
    }

    /// Waits for the backoff and for readiness, and starts the next attempt. Nothing is in flight
    /// meanwhile, so a wait that is cut short here knows whether the tool ran; an outer layer would
    /// not.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let mut this = self.project();
        let Retries { run, timer, cancelled } =
            this.retries.as_mut().and_then(Arc::get_mut).expect("an attempt failed");
        let call = Call { settings: this.held, policy: this.policy, spare: this.spare.as_ref() };
        if let Some(cancelled) = cancelled
            && let cancelled = cancelled.get_mut().unwrap_or_else(PoisonError::into_inner)
            && cancelled.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(call.cancelled(run)));
        }
        if matches!(*this.state, State::Waiting) {
            if let Some(backoff) = timer {
                ready!(backoff.as_mut().poll(cx));
            }
            *timer = None;
            this.state.set(State::Retrying);
        }
        match this.inner.poll_ready(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(call.unready(run, error.into()))),
            Poll::Pending => {
                if timer.is_none() {
                    *timer = call.latest(run).map(|latest| Box::pin(sleep_until(latest)));
                }
                let Some(patience) = timer else { return Poll::Pending };
                ready!(patience.as_mut().poll(cx));
                return Poll::Ready(Err(call.overdue(run, Instant::now())));
            }
        }
        let now = Instant::now();
        let copy = call.begin(run, now)?;
        *timer = None;
        // If the request cannot be copied again, the last attempt gets the original.
        let mut req = copy.or_else(|| this.spare.take()).expect("a retry has a spare");
        this.policy.set_attempt(&mut req, run.attempt());
        this.policy.set_stamp(&mut req, Some(CoarseInstant::at(now.into_std())));
        let attempt = this.inner.call(req);
        *this.started = Some(now);
        this.state.set(State::Calling { attempt });
        Poll::Ready(Ok(()))
    }
}

tr_policy::debug_parts! { RetryFuture<S, F, Req, A>, |it|
    state = match &it.state {
        State::Calling { .. } => "attempt",
        State::Waiting => "backoff",
        State::Retrying => "readiness",
    },
    retries = it.retries.as_ref().map_or(0, |retries| retries.run.attempt()),
}
