//! Runs with a caller, and what happens when the caller drops them.
use super::{CellOf, DetachedCall, Phase, empty, return_cell};
use crate::bounds::{Answers, Detachable};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::runtime::Handle;

/// A run whose caller still polls it. When the caller drops it, the run goes on in a task, unless
/// it has no claim: then it ends with its caller.
pub(crate) struct Attended<S, F, Req, R, A, V>(pub(crate) DetachedCall<S, F, Req, R, A, V>);

impl<S, F, Req, R, A, V> Drop for Attended<S, F, Req, R, A, V> {
    #[inline]
    fn drop(&mut self) {
        if let Some(cell) = self.0.0.take() {
            (cell.leave)(cell);
        }
    }
}

/// The caller dropped the future before the end.
pub(super) fn leave<S, Req, A, V>(mut cell: CellOf<S, Req, A, V>)
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    if cell.run.home.is_some() {
        empty(&mut cell);
        return return_cell(cell);
    }
    if !matches!(cell.run.phase, Phase::Called | Phase::Ending) {
        return; // It did not start, or has panicked.
    }
    if let Some(claim) = &cell.run.claim {
        claim.detach();
    }
    // Without a runtime, nothing would poll it: it ends here, and leaves `unknown`.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(Unattended(DetachedCall(Some(cell))));
    }
}

/// A run without a caller, in a task of its own.
struct Unattended<S, F, Req, R, A, V>(DetachedCall<S, F, Req, R, A, V>);

impl<S, Req, A, V> Future for Unattended<S, S::Future, Req, S::Response, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // The response has no receiver; the waiters have got theirs.
        let _ = ready!(self.0.poll(cx));
        Poll::Ready(())
    }
}

impl<S, F, Req, R, A, V> fmt::Debug for Attended<S, F, Req, R, A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = self.0.0.as_ref().map(|cell| &cell.run);
        f.debug_struct("Attended")
            .field("phase", &run.map(|run| run.phase))
            .field("claim", &run.and_then(|run| run.claim.as_ref()))
            .finish_non_exhaustive()
    }
}
