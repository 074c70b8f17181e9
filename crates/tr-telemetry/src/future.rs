//! [`TelemetryFuture`]: polls a call within its `Watch`, and reports its end.
use crate::watch::{Outcome, Watch};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tr_core::{BoxError, ResponsePolicy, debug_parts};

pin_project! {
    /// The response of a [`Telemetry`](crate::Telemetry).
    #[must_use = "futures do nothing unless polled"]
    pub struct TelemetryFuture<F, A> {
        #[pin]
        inner: F,
        watch: Option<Watch>,
        policy: A,
    }
}

impl<F, A> TelemetryFuture<F, A> {
    #[inline]
    pub(crate) const fn new(inner: F, watch: Option<Watch>, policy: A) -> Self {
        Self { inner, watch, policy }
    }
}

impl<F, A, T, E> Future for TelemetryFuture<F, A>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: ResponsePolicy<T>,
{
    type Output = Result<T, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(watch) = this.watch else { return this.inner.poll(cx).map_err(Into::into) };
        let mut end = ready!(watch.within(|| this.inner.poll(cx))).map_err(Into::into);
        if let (Ok(response), Some(span)) = (&mut end, watch.span_id()) {
            set_span(watch, response, &span, this.policy);
        }
        report(watch, &end, this.policy);
        Poll::Ready(end)
    }
}

/// Notes the span's id on the response.
#[cold]
fn set_span<T, A: ResponsePolicy<T>>(watch: &Watch, response: &mut T, span: &str, policy: &A) {
    if watch.is_attempt() {
        policy.add_span(response, span);
    } else {
        policy.set_span(response, span);
    }
}

/// Ends the watch with the classification of this result.
fn report<T, A>(watch: &mut Watch, end: &Result<T, BoxError>, policy: &A)
where
    A: ResponsePolicy<T>,
{
    let result = end.as_ref().map_err(|error| &**error as _);
    if let (Some(hidden), Ok(response)) = (&mut watch.hidden, &end) {
        hidden.learn(policy.content(response));
    }
    if let (Some(hidden), Some(chunks)) = (&mut watch.hidden, &watch.chunks) {
        hidden.learn_stream(chunks);
    }
    let message = if watch.wants_message() { policy.message(result) } else { None };
    watch.end(Outcome {
        end: policy.classify(result),
        message: message.as_deref(),
        is_from_cache: end.as_ref().is_ok_and(|response| policy.is_from_cache(response)),
        is_dropped: false,
    });
}

debug_parts! { TelemetryFuture<F, A>, |it| watch = it.watch }
