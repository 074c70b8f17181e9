//! Every end with the number of attempts and the duration, as envelopes need them.
use pin_project_lite::pin_project;
use serde_json::Value;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;
use tower_service::Service;
use tr_breaker::error::CircuitOpen;
use tr_core::{BoxError, ToolCall, ToolOutcome, call::Runs, failure_info, find, internal::Called};
use tr_retry::RetryExhausted;
use tr_wire::{
    Normaliser,
    bs_tim_5::{RetriedBy, ToolResultEnvelope},
    utee::ToolResponse,
};

/// A service that never fails and returns what an envelope contains.
///
/// For dispatchers that write envelopes, around [`ToolStack::service`](crate::ToolStack::service).
/// [`Envelopes`](crate::Envelopes) reads them, too. An answer of a tool that is an envelope already is
/// not wrapped again, even where the stack is off.
///
/// ```
/// use tool_reliability::{Measured, ToolStack};
/// use tower::{ServiceExt, service_fn};
/// use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let tool = service_fn(|_: ToolCall| async { Err::<ToolOutcome, BoxError>("no such order".into()) });
/// let tool = Measured::new(ToolStack::default().service(tool));
/// let call = ToolCall::new("pay", Params::empty_object()).request_id("r-1");
/// let Ok(finished) = tool.oneshot(call).await;
/// let envelope = finished.envelope();
/// assert_eq!((&*envelope.request_id, envelope.attempts), ("r-1", 1));
/// # }
/// ```
#[derive(Debug)]
pub struct Measured<S> {
    inner: S,
    /// Why `inner` will never be ready again; the next call returns it.
    broken: Option<BoxError>,
}

impl<S: Clone> Clone for Measured<S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone())
    }
}

impl<S> Measured<S> {
    /// The service whose calls are measured.
    pub(crate) const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Measures the calls of `inner`.
    #[must_use]
    pub const fn new(inner: S) -> Self {
        Self { inner, broken: None }
    }
}

impl<S> Service<ToolCall> for Measured<S>
where
    S: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>>,
{
    type Response = Finished;
    type Error = Infallible;
    type Future = MeasuredFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.broken.is_none() {
            self.broken = ready!(self.inner.poll_ready(cx)).err().map(Into::into);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let measure = Measure::of(&mut call);
        let called = match self.broken.take() {
            Some(error) => Called::not(error),
            None => Called::new(self.inner.call(call)),
        };
        MeasuredFuture { called, measure }
    }
}

pin_project! {
    /// The response of a [`Measured`] service.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct MeasuredFuture<F> {
        #[pin]
        called: Called<F>,
        measure: Measure,
    }
}

impl<F, E> Future for MeasuredFuture<F>
where
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Finished, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        let end = ready!(this.called.poll(cx));
        Poll::Ready(Ok(self.finish(end)))
    }
}

impl<F> MeasuredFuture<F> {
    /// What there is to say at this end.
    pub(crate) fn finish(self: Pin<&mut Self>, end: Result<ToolOutcome, BoxError>) -> Finished {
        let measure = self.project().measure;
        // A stack that is off, or does not normalise, has not looked.
        let manifest = measure.call.manifest();
        measure.finished(end.map(|it| Normaliser::default().unwrap_envelope(it, manifest)))
    }
}

/// A call whose runs are counted and whose time is taken.
#[derive(Debug)]
pub(crate) struct Measure {
    call: ToolCall,
    runs: Runs,
    since: Instant,
}

impl Measure {
    pub(crate) fn of(call: &mut ToolCall) -> Self {
        let runs = Runs::default();
        call.parts_mut().runs = Some(runs.clone());
        Self { call: call.clone(), runs, since: Instant::now() }
    }

    /// The call with this end, or with one of the ends that it has.
    pub(crate) fn finished(&self, end: Result<ToolOutcome, BoxError>) -> Finished {
        let (attempts, duration) = (self.runs.count(), self.since.elapsed());
        Finished { call: self.call.clone(), end, attempts, duration }
    }
}

/// A call that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// The call.
    pub call: ToolCall,
    /// Its outcome.
    pub end: Result<ToolOutcome, BoxError>,
    /// How often the tool was run for this call: 0 for one that was answered from a record or
    /// refused.
    pub attempts: u32,
    /// From the call to its end, with all delays.
    pub duration: Duration,
}

impl Finished {
    /// Its envelope in the form of BS-TIM-5, with `spanId` and `emittedSpans`, which BS-TIM-5 lacks, where
    /// there are any.
    #[must_use]
    pub fn envelope(&self) -> ToolResultEnvelope {
        let Self { call, attempts, duration, .. } = self;
        let end = self.end.as_ref().map_err(|error| &**error);
        let mut envelope = ToolResultEnvelope::of(call, end, *attempts, *duration);
        if let Ok(outcome) = end {
            let parts = outcome.parts();
            if let Some(span) = &parts.span_id {
                envelope.extra.set("spanId", Value::from(&**span));
            }
            if !parts.emitted_spans.is_empty() {
                let spans = parts.emitted_spans.iter().map(|span| Value::from(&**span));
                envelope.extra.set("emittedSpans", spans.collect::<Value>());
            }
        }
        if let (Err(error), Some(failure)) = (end, &mut envelope.error) {
            failure.breaker_state = find::<CircuitOpen>(error).map(CircuitOpen::state);
            let retried = find::<RetryExhausted>(error).map(RetryExhausted::retried);
            let retried = retried.filter(|retried| !retried.is_empty());
            envelope.retried_by =
                retried.map(|retried| retried.iter().map(RetriedBy::from).collect());
        }
        envelope
    }

    /// Its envelope in the form of UTEE, with `attempts` and `fromCache`, which UTEE lacks, beside its own
    /// members.
    #[must_use]
    pub fn response(&self) -> ToolResponse {
        let end = self.end.as_ref().map_err(|error| &**error);
        let mut response = ToolResponse::of(&self.call, end, self.duration);
        let from_cache = match end {
            Ok(outcome) => outcome.from_cache(),
            Err(error) => failure_info(error).is_some_and(|info| info.replay().is_some()),
        };
        response.extra.set("attempts", Value::from(self.attempts));
        response.extra.set("fromCache", Value::from(from_cache));
        response
    }
}
