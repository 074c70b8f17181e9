//! Withdrawing calls, and whole turns.
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

/// Withdraws calls of a turn by their cancellation ids, or the whole turn. A clone does the same.
#[derive(Clone, Debug)]
pub struct Canceller {
    pub(crate) turn: CancellationToken,
    pub(crate) calls: Arc<HashMap<Box<str>, CancellationToken>>,
}

impl Canceller {
    /// Withdraws the calls with this cancellation id: their own, or else their name. What runs is
    /// dropped, what waits never starts. `false` if the plan knows no such id.
    #[must_use = "`false` says that nothing was cancelled"]
    pub fn cancel(&self, id: &str) -> bool {
        let token = self.calls.get(id);
        token.inspect(|token| token.cancel()).is_some()
    }

    /// Withdraws all that has not ended. The turn ends at once, with the results so far.
    pub fn cancel_turn(&self) {
        self.turn.cancel();
    }
}

/// What a call carries inward, so that who runs it further in hears of its cancellation.
#[derive(Debug)]
pub(crate) struct Token(pub(crate) CancellationToken);

impl Cancellation for Token {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn cancelled(&self) -> Withdrawn {
        Box::pin(self.0.clone().cancelled_owned())
    }
}

/// Ends once a call is withdrawn.
type Withdrawn = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Applies [`Cancellable`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CancelLayer(());

impl CancelLayer {
    /// Directly around the tool, inside of the stack.
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

/// Ends an attempt when its call is withdrawn.
///
/// A turn drops a call that is withdrawn. Where calls have keys, a dropped call runs on for the
/// sake of its record; this layer ends such a run too, and no retry follows. (Between two attempts
/// the retry itself ends it.) It heeds any call with a [cancellation](tr_core::CallParts::cancellation).
///
/// # Errors
/// Code `cancelled`. What was running was dropped, so the tool may have run
/// ([`Ran::Unknown`]), unless the attempt had not begun ([`Ran::No`]).
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
            return CancellableFuture { attempt: None, withdrawn: None };
        }
        let withdrawn = cancellation.map(Cancellation::cancelled);
        CancellableFuture { attempt: Some(self.inner.call(call)), withdrawn }
    }
}

pin_project! {
    /// The response of a [`Cancellable`] service.
    #[must_use = "futures do nothing unless polled"]
    pub struct CancellableFuture<F> {
        // `None`: the call was withdrawn before this attempt.
        #[pin]
        attempt: Option<F>,
        withdrawn: Option<Withdrawn>,
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
            return Poll::Ready(Err(Stopped::withdrawn(Ran::No).into()));
        };
        if let Poll::Ready(end) = attempt.poll(cx) {
            return Poll::Ready(end.map_err(Into::into));
        }
        let Some(withdrawn) = this.withdrawn else { return Poll::Pending };
        // An attempt that uses up its task's budget must not keep it from being withdrawn.
        ready!(Pin::new(&mut coop::unconstrained(withdrawn.as_mut())).poll(cx));
        this.attempt.set(None);
        Poll::Ready(Err(Stopped::withdrawn(Ran::Unknown).into()))
    }
}

impl<F> fmt::Debug for CancellableFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cancellable = self.withdrawn.is_some();
        f.debug_struct("CancellableFuture").field("cancellable", &cancellable).finish()
    }
}
