//! The service and its response future.
use crate::{
    bounds::{Answers, Detachable},
    claim::{Claims, Shared, State},
    run::Attended,
};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio_util::sync::PollSemaphore;
use tower_service::Service;
use tr_core::{BoxError, DefaultPolicy, ToolOutcome, internal::Shard};

/// Runs a call once per key and answers its duplicates from the record.
///
/// Always ready unless calls in flight are [bounded](crate::Builder::max_in_flight), since a replay needs no capacity of
/// the inner service. The response future of a first call polls the inner service's readiness and
/// calls it.
pub struct Idempotency<S, A = DefaultPolicy, V = ToolOutcome> {
    claims: Claims<S, A, V>,
    /// Where calls in flight are bounded, what waits for a place.
    places: Option<Box<PollSemaphore>>,
}

/// The response of an [`Idempotency`](crate::Idempotency).
///
/// Dropped before its first poll, the call never happens. Dropped once the tool may have
/// started, the call goes on in a task of the current tokio runtime and is recorded.
#[must_use = "futures do nothing unless polled"]
pub struct IdempotencyFuture<S, F, Req, R, A, V> {
    state: State<S, F, Req, R, A, V>,
}

/// Nothing in it is pinned: what runs has an allocation of its own.
impl<S, F, Req, R, A, V> Unpin for IdempotencyFuture<S, F, Req, R, A, V> {}

impl<S, A, V> Idempotency<S, A, V> {
    pub(crate) fn new(inner: S, answers: A, shared: Shard<Shared<V>>) -> Self {
        let places = shared.places.clone().map(|it| Box::new(PollSemaphore::new(it)));
        Self { claims: Claims { inner, answers, shared, place: None }, places }
    }

    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.claims.inner
    }
}

impl<S: Clone, A: Copy, V> Clone for Idempotency<S, A, V> {
    fn clone(&self) -> Self {
        // A place is one call's.
        let claims = Claims { place: None, ..self.claims.clone() };
        Self { claims, places: self.places.clone() }
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
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if let Some(places) = self.places.as_mut().filter(|_| self.claims.place.is_none()) {
            self.claims.place = ready!(places.poll_acquire(cx)).map(Arc::new);
        }
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        self.claims.shared.settle();
        let state = State::start(&self.claims, req);
        self.claims.place = None;
        IdempotencyFuture { state }
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
        let state = &mut self.get_mut().state;
        loop {
            match state {
                State::Known(end) => {
                    return Poll::Ready(end.take().expect("polled after completion"));
                }
                State::Running(Attended(call)) => return call.poll(cx),
                State::Stored(run) => return run.poll(cx),
                State::Waiting(waiting) => *state = ready!(waiting.as_mut().poll(cx)),
            }
        }
    }
}

tr_core::debug_parts! { IdempotencyFuture<S, F, Req, R, A, V>, |it|
    state = match &it.state {
        State::Known(_) => &"known" as &dyn fmt::Debug,
        State::Running(call) => call,
        State::Stored(_) => &"running, under a claim of the store",
        State::Waiting(_) => &"waiting",
    }
}
