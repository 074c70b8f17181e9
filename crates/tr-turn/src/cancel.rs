//! Cancels calls and turns.
use crate::error::Stopped;
use pin_project_lite::pin_project;
use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::task::coop;
use tokio_util::sync::CancellationToken;
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{BoxError, Cancellation, Ran, ToolCall};

/// Cancels calls of a turn by their cancellation ids, or the whole turn. A clone is another handle.
#[derive(Clone, Debug)]
pub struct Canceller {
    pub(crate) turn: CancellationToken,
    pub(crate) calls: Arc<HashMap<Box<str>, CancellationToken>>,
}

impl Canceller {
    /// Cancels the calls with this cancellation id, which is the call's name by default. Running
    /// calls are dropped, waiting calls never start. `false` if the plan has no such id.
    #[must_use = "`false` says that nothing was cancelled"]
    pub fn cancel(&self, id: &str) -> bool {
        let token = self.calls.get(id);
        token.inspect(|token| token.cancel()).is_some()
    }

    /// Cancels all calls that have not ended. The turn ends at once, with the results so far.
    pub fn cancel_turn(&self) {
        self.turn.cancel();
    }
}

/// The token that a call carries, so that inner layers can observe its cancellation.
#[derive(Debug)]
pub(crate) struct Token(pub(crate) CancellationToken);

impl Cancellation for Token {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn cancelled(&self) -> CancelledFuture {
        Box::pin(self.0.clone().cancelled_owned())
    }
}

/// Resolves once a call is cancelled.
type CancelledFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wraps services in [`Cancellable`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CancelLayer(());

impl CancelLayer {
    /// A layer to put directly around the tool, inside the stack.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for CancelLayer {
    type Service = Cancellable<S>;

    fn layer(&self, inner: S) -> Cancellable<S> {
        Cancellable { inner }
    }
}

/// Ends an attempt when its call is cancelled.
///
/// A turn drops a cancelled call. A dropped call with a key runs to its end in order to be
/// recorded; this layer ends such a run too, and no retry follows. (Between two attempts the retry
/// layer ends it.) It applies to any call with a [cancellation](tr_core::CallParts::cancellation).
///
/// # Errors
/// Code `cancelled`. The attempt was dropped, so the tool may have run ([`Ran::Unknown`]), unless
/// the attempt had not started ([`Ran::No`]).
#[derive(Clone, Copy, Debug)]
pub struct Cancellable<S> {
    inner: S,
}

impl<S> Service<ToolCall> for Cancellable<S>
where
    S: Service<ToolCall>,
    S::Error: Into<BoxError>,
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
            return Poll::Ready(Err(Stopped::cancelled(Ran::No).into()));
        };
        if let Poll::Ready(end) = attempt.poll(cx) {
            return Poll::Ready(end.map_err(Into::into));
        }
        let Some(cancelled) = this.cancelled else { return Poll::Pending };
        // Unconstrained, so that an attempt which uses up the task's budget does not block its
        // cancellation.
        ready!(Pin::new(&mut coop::unconstrained(cancelled.as_mut())).poll(cx));
        this.attempt.set(None);
        Poll::Ready(Err(Stopped::cancelled(Ran::Unknown).into()))
    }
}

impl<F> fmt::Debug for CancellableFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cancellable = self.cancelled.is_some();
        f.debug_struct("CancellableFuture").field("cancellable", &cancellable).finish()
    }
}
