//! The service that refuses params which fail their tool's schema.
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_core::{BoxError, ToolCall};

/// Refuses a call whose params fail the input schema in its manifest.
///
/// # Errors
/// `InvalidParams` of `tr-core` names every fault with its JSON pointer. The tool did not run
/// ([`Ran::No`](tr_core::Ran::No)), and a repeat fails again.
#[derive(Clone, Copy, Debug)]
pub struct Checked<S> {
    pub(super) inner: S,
}

impl<S> Service<ToolCall> for Checked<S>
where
    S: Service<ToolCall>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = CheckedFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        let state = match check(&call) {
            Ok(()) => State::Called { inner: self.inner.call(call) },
            Err(error) => State::Refused { error: Some(error) },
        };
        CheckedFuture { state }
    }
}

#[inline]
fn check(call: &ToolCall) -> Result<(), BoxError> {
    match call.manifest() {
        Some(manifest) if manifest.input_schema.is_some() => {
            manifest.check(&call.parts().params).map_err(Into::into)
        }
        _ => Ok(()),
    }
}

pin_project! {
    /// The response of a [`Checked`] service.
    #[derive(Debug)]
    pub struct CheckedFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    #[derive(Debug)]
    enum State<F> {
        Called { #[pin] inner: F },
        Refused { error: Option<BoxError> },
    }
}

impl<F, T, E> Future for CheckedFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Called { inner } => inner.poll(cx).map_err(Into::into),
            StateProj::Refused { error } => {
                Poll::Ready(Err(error.take().expect("polled after completion")))
            }
        }
    }
}
