//! The response of a [`LoopGuard`](crate::LoopGuard).
use crate::watch::Watch;
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tr_core::{BoxError, LoopPolicy};

pin_project! {
    /// The response of a [`LoopGuard`](crate::LoopGuard).
    #[must_use = "futures do nothing unless polled"]
    pub struct LoopGuardFuture<F, A, Req, Subject> {
        #[pin]
        state: State<F, Watch<A, Subject>>,
        req: PhantomData<fn(Req)>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, W> {
        Running { #[pin] inner: F, watch: Option<W> },
        Refused { error: Option<BoxError> },
    }
}

impl<F, A, Req, Subject> LoopGuardFuture<F, A, Req, Subject> {
    #[inline]
    pub(crate) const fn running(inner: F, watch: Option<Watch<A, Subject>>) -> Self {
        Self { state: State::Running { inner, watch }, req: PhantomData }
    }

    pub(crate) const fn refused(error: BoxError) -> Self {
        Self { state: State::Refused { error: Some(error) }, req: PhantomData }
    }
}

impl<F, A, Req, Subject, Res, E> Future for LoopGuardFuture<F, A, Req, Subject>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
    A: LoopPolicy<Req, Res, Subject = Subject>,
{
    type Output = Result<Res, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Running { inner, watch } => {
                let end = ready!(inner.poll(cx)).map_err(Into::into);
                Poll::Ready(match watch {
                    Some(watch) => watch.end(end),
                    None => end,
                })
            }
            StateProj::Refused { error } => {
                Poll::Ready(Err(error.take().expect("polled after completion")))
            }
        }
    }
}

impl<F, A, Req, Subject> fmt::Debug for LoopGuardFuture<F, A, Req, Subject> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = matches!(self.state, State::Refused { .. });
        f.debug_struct("LoopGuardFuture").field("refused", &refused).finish_non_exhaustive()
    }
}
