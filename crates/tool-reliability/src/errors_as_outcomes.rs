//! Turns errors into outcomes that carry the error.
use pin_project_lite::pin_project;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_breaker::error::CircuitOpen;
use tr_core::{
    BoxError, FailureInfo, ToolCall, ToolError, ToolOutcome, classify, failure_info, find,
    internal::Called,
};
use tr_retry::RetryExhausted;

/// A service that never fails: an error of the inner service becomes an outcome with that error.
///
/// For dispatchers that must always answer a model; [`Measured`](crate::Measured) is for those that
/// write envelopes. The outcome has the error's code, message, verdict and whether the tool ran, the
/// state of the breaker that refused the call, the retries before, and whether it is a replay.
#[derive(Debug)]
pub struct ErrorsAsOutcomes<S> {
    inner: S,
    /// Why `inner` will never be ready again; the next call returns it.
    broken: Option<BoxError>,
}

impl<S: Clone> Clone for ErrorsAsOutcomes<S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone())
    }
}

impl<S> ErrorsAsOutcomes<S> {
    /// Wraps `inner`.
    #[must_use]
    pub const fn new(inner: S) -> Self {
        Self { inner, broken: None }
    }
}

impl<S> Service<ToolCall> for ErrorsAsOutcomes<S>
where
    S: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>>,
{
    type Response = ToolOutcome;
    type Error = Infallible;
    type Future = ErrorsAsOutcomesFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.broken.is_none() {
            self.broken = ready!(self.inner.poll_ready(cx)).err().map(Into::into);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let call = match self.broken.take() {
            Some(error) => Called::not(error),
            None => Called::new(self.inner.call(call)),
        };
        ErrorsAsOutcomesFuture { call }
    }
}

pin_project! {
    /// The response of a [`ErrorsAsOutcomes`] service.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ErrorsAsOutcomesFuture<F> {
        #[pin]
        call: Called<F>,
    }
}

impl<F, E> Future for ErrorsAsOutcomesFuture<F>
where
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<ToolOutcome, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let end = ready!(self.project().call.poll(cx));
        Poll::Ready(Ok(end.unwrap_or_else(|error| outcome(&*error))))
    }
}

/// The outcome that says what `error` says.
#[must_use]
pub fn outcome(error: &(dyn std::error::Error + Send + Sync + 'static)) -> ToolOutcome {
    let found = classify::error(error).end;
    let mut failure = ToolError::new(found.code, error.to_string()).classified(found);
    failure.breaker = find::<CircuitOpen>(error).map(CircuitOpen::state);
    let mut outcome = ToolOutcome::failure(failure);
    if let Some(exhausted) = find::<RetryExhausted>(error) {
        outcome.set_retried(exhausted.retried().to_vec());
    }
    match failure_info(error).and_then(FailureInfo::replay) {
        Some(replay) => outcome.replayed(replay),
        None => outcome,
    }
}
