//! [`TelemetryFuture`]: polls a call within its `Watch`, and reports its end.
use crate::{
    spans::Emitted,
    watch::{Outcome, Watch},
};
use pin_project_lite::pin_project;
use std::{
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
        if let Some(span) = watch.span_id() {
            set_span(watch, end.as_mut().ok(), span, this.policy);
        }
        report(watch, &end, this.policy);
        Poll::Ready(end)
    }
}

/// Notes the span's id on the response: that of an attempt, which may have failed, on the call's.
#[cold]
fn set_span<T, A>(watch: &Watch, response: Option<&mut T>, span: String, policy: &A)
where
    A: ResponsePolicy<T>,
{
    let call = watch.context.as_ref().and_then(|context| context.get::<Emitted>());
    match (watch.is_attempt(), call, response) {
        (true, Some(call), _) => call.add(span),
        (true, None, Some(response)) => policy.add_span(response, &span),
        (false, call, Some(response)) => {
            let attempts = call.map(Emitted::take).unwrap_or_default();
            attempts.iter().for_each(|attempt| policy.add_span(response, attempt));
            policy.set_span(response, &span);
        }
        (_, _, None) => {}
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
