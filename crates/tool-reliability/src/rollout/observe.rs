//! Mode observe: telemetry around the bare tool, which it does not change.
use crate::{
    adapter::AdapterLayer,
    hooks::{Hooked, HookedFuture},
};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{
    BoxError, DefaultPolicy, ToolCall, ToolOutcome, debug_parts,
    internal::{ReadyOnCall, ReadyOnCallFuture, lock},
};
use tr_telemetry::{Signals, TelemetryLayer, future::TelemetryFuture};

/// What observes the calls of a bare tool.
#[derive(Clone, Debug)]
pub(crate) struct Observers {
    call: TelemetryLayer,
    attempt: TelemetryLayer,
    adapter: AdapterLayer,
}

impl Observers {
    /// To `signals`, which hear of each failure what `adapter` would make of it.
    pub(crate) fn new(signals: &Signals, adapter: AdapterLayer) -> Self {
        Self {
            call: TelemetryLayer::call(signals),
            attempt: TelemetryLayer::attempt(signals),
            adapter,
        }
    }

    /// Calls `tool`, and reports the call.
    pub(crate) fn call<S>(
        &self,
        tool: &mut ReadyOnCall<Hooked<S>>,
        call: ToolCall,
    ) -> ObservedFuture<S, S::Future>
    where
        S: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>> + Clone,
    {
        let end = OwnEnd::default();
        let bare = Bare { tool, end: &end, adapter: self.adapter };
        let reported = self.call.layer(self.attempt.layer(bare)).call(call);
        ObservedFuture { reported, end }
    }
}

/// The tool's own end, which the caller gets in place of the reported one.
type OwnEnd = Arc<Mutex<Option<Result<ToolOutcome, BoxError>>>>;

/// The bare tool for one call: answers with what is reported of its end.
struct Bare<'t, S> {
    tool: &'t mut ReadyOnCall<Hooked<S>>,
    end: &'t OwnEnd,
    adapter: AdapterLayer,
}

impl<S> Service<ToolCall> for Bare<'_, S>
where
    S: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>> + Clone,
{
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = BareFuture<S, S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The switch has polled the tool, or its future does.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let of = call.parts().manifest.is_some().then(|| call.clone());
        let (end, adapter) = (self.end.clone(), self.adapter);
        BareFuture { inner: self.tool.call(call), of, end, adapter }
    }
}

pin_project! {
    /// The response of the bare tool.
    struct BareFuture<S, F> {
        #[pin]
        inner: ReadyOnCallFuture<Hooked<S>, HookedFuture<F>, ToolCall>,
        of: Option<ToolCall>,
        end: OwnEnd,
        adapter: AdapterLayer,
    }
}

impl<S, F, E> Future for BareFuture<S, F>
where
    S: Service<ToolCall, Response = ToolOutcome, Error = E, Future = F>,
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<ToolOutcome, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let end = ready!(this.inner.poll(cx));
        let manifest = this.of.as_ref().and_then(ToolCall::manifest);
        let seen = this.adapter.seen(&end, manifest);
        *lock(this.end) = Some(end);
        Poll::Ready(seen)
    }
}

pin_project! {
    /// An observed call of the bare tool.
    pub(crate) struct ObservedFuture<S, F> {
        #[pin]
        reported: TelemetryFuture<TelemetryFuture<BareFuture<S, F>, DefaultPolicy>, DefaultPolicy>,
        end: OwnEnd,
    }
}

impl<S, F, E> Future for ObservedFuture<S, F>
where
    S: Service<ToolCall, Response = ToolOutcome, Error = E, Future = F>,
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<ToolOutcome, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let reported = ready!(this.reported.poll(cx));
        // A tool has no other end than its own.
        Poll::Ready(lock(this.end).take().unwrap_or(reported))
    }
}

debug_parts! { ObservedFuture<S, F>, |_it| }
