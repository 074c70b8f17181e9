//! The innermost room: what a tool gives back, in the contract's words.
use pin_project_lite::pin_project;
use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{BoxError, Facts, ToolCall, ToolManifest, ToolOutcome, classify, facts};

/// Applies [`Adapter`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AdapterLayer(());

impl AdapterLayer {
    /// Around the bare tool.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for AdapterLayer {
    type Service = Adapter<S>;

    fn layer(&self, inner: S) -> Adapter<S> {
        Adapter { inner }
    }
}

/// Classifies each failure once, where the tool's manifest is at hand, so that all layers see the
/// same verdict. A success passes untouched.
#[derive(Clone, Copy, Debug)]
pub struct Adapter<S> {
    inner: S,
}

impl<S> Service<ToolCall> for Adapter<S>
where
    S: Service<ToolCall, Response = ToolOutcome>,
    S::Error: Into<BoxError>,
{
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = AdapterFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        // A copy of the call is a count that only this call touches; a manifest's is everybody's.
        let of = call.parts().manifest.is_some().then(|| call.clone());
        AdapterFuture { inner: self.inner.call(call), of }
    }
}

pin_project! {
    /// The response of an [`Adapter`].
    #[derive(Debug)]
    pub struct AdapterFuture<F> {
        #[pin]
        inner: F,
        of: Option<ToolCall>,
    }
}

impl<F, E> Future for AdapterFuture<F>
where
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<ToolOutcome, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let manifest = this.of.as_ref().and_then(ToolCall::manifest);
        Poll::Ready(match ready!(this.inner.poll(cx)) {
            Ok(outcome) if outcome.error().is_none() => Ok(outcome),
            Ok(outcome) => Ok(judged(outcome, manifest)),
            Err(error) => Err(tool_failed(error.into(), manifest)),
        })
    }
}

/// The outcome with its verdict on it.
#[cold]
fn judged(mut outcome: ToolOutcome, manifest: Option<&ToolManifest>) -> ToolOutcome {
    if let Some(error) = &mut outcome.parts_mut().error {
        classify::stamp(error, manifest);
    }
    outcome
}

/// The error with facts in its chain.
#[cold]
fn tool_failed(error: BoxError, manifest: Option<&ToolManifest>) -> BoxError {
    let overrules = manifest.is_some_and(|tool| !tool.classification.is_empty());
    if facts(&*error).is_some() && !overrules {
        return error;
    }
    let found = classify::error(&*error);
    let found = manifest.map_or(found, |tool| found.with_manifest(tool));
    let message = error.to_string();
    let facts = Facts::of(found.end).because(error);
    ToolFailed { message, facts }.into()
}

/// The tool's own error, classified. Its text is the tool's, and so is its cause.
#[derive(Debug)]
pub struct ToolFailed {
    message: String,
    facts: Facts,
}

impl fmt::Display for ToolFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.facts)
    }
}
