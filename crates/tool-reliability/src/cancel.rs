//! Ends the attempt that is running when its call is cancelled.
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::task::coop;
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{BoxError, Cancellation, FailureInfo, Ran, ToolCall, Verdict, code, debug_parts};

/// The call was cancelled. Code `cancelled`; its [`FailureInfo`] says whether the tool may have run.
#[derive(Debug, thiserror::Error)]
#[error("Cancelled by the caller")]
pub struct CallCancelled(#[source] FailureInfo);

impl CallCancelled {
    pub(crate) const fn new(ran: Ran) -> Self {
        Self(FailureInfo::new(code::CANCELLED, ran, Verdict::Cancelled).by_layer())
    }
}

/// Resolves once a call is cancelled.
type CancelledFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wraps services in [`Cancellable`], to put around a tool. [`ToolStack`](crate::ToolStack) has it already.
#[derive(Clone, Copy, Debug, Default)]
pub struct CancelLayer;

impl<S> Layer<S> for CancelLayer {
    type Service = Cancellable<S>;

    fn layer(&self, inner: S) -> Cancellable<S> {
        Cancellable { inner }
    }
}

/// Ends an attempt when its call is cancelled.
///
/// It applies to calls with a [cancellation](tr_core::CallParts::cancellation). A dropped call with a
/// key runs to its end in order to be recorded; this layer ends such a run too, and no retry follows.
/// (Between two attempts the retry layer ends it.)
///
/// # Errors
/// [`CallCancelled`]. The attempt was dropped, so the tool may have run ([`Ran::Unknown`]), unless
/// the attempt had not started ([`Ran::No`]).
#[derive(Clone, Copy, Debug)]
pub struct Cancellable<S> {
    inner: S,
}

impl<S> Service<ToolCall> for Cancellable<S>
where
    S: Service<ToolCall, Error: Into<BoxError>>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = CancellableFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let cancellation = call.parts().cancellation.as_deref();
        if cancellation.is_some_and(Cancellation::is_cancelled) {
            return CancellableFuture { attempt: None, cancelled: None };
        }
        let cancelled = cancellation.map(Cancellation::cancelled);
        CancellableFuture { attempt: Some(self.inner.call(call)), cancelled }
    }
}

pin_project! {
    /// The response of a [`Cancellable`] service.
    #[must_use = "futures do nothing unless polled"]
    pub struct CancellableFuture<F> {
        // `None`: the call was cancelled before this attempt.
        #[pin]
        attempt: Option<F>,
        cancelled: Option<CancelledFuture>,
    }
}

impl<F, T, E> Future for CancellableFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(attempt) = this.attempt.as_mut().as_pin_mut() else {
            return Poll::Ready(Err(CallCancelled::new(Ran::No).into()));
        };
        if let Poll::Ready(end) = attempt.poll(cx) {
            return Poll::Ready(end.map_err(Into::into));
        }
        let Some(cancelled) = this.cancelled else { return Poll::Pending };
        // Unconstrained, so that an attempt which uses up the task's budget does not block its
        // cancellation.
        ready!(Pin::new(&mut coop::unconstrained(cancelled.as_mut())).poll(cx));
        this.attempt.set(None);
        Poll::Ready(Err(CallCancelled::new(Ran::Unknown).into()))
    }
}

debug_parts! { CancellableFuture<F>, |it| cancellable = it.cancelled.is_some() }
