//! The response of a [`LoopGuard`](crate::LoopGuard).
use crate::watch::Watch;
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tr_core::{BoxError, LoopPolicy, debug_parts};

pin_project! {
    /// The response of a [`LoopGuard`](crate::LoopGuard).
    #[must_use = "futures do nothing unless polled"]
    pub struct LoopGuardFuture<F, A, Req, Res>
    where
        A: LoopPolicy<Req, Res>,
    {
        #[pin]
        state: State<F, Watch<A, Req, Res>>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, W> {
        Running { #[pin] inner: F, watch: Option<W> },
        Refused { error: Option<BoxError> },
    }
}

impl<F, A: LoopPolicy<Req, Res>, Req, Res> LoopGuardFuture<F, A, Req, Res> {
    #[inline]
    pub(crate) const fn running(inner: F, watch: Option<Watch<A, Req, Res>>) -> Self {
        Self { state: State::Running { inner, watch } }
    }

    pub(crate) const fn refused(error: BoxError) -> Self {
        Self { state: State::Refused { error: Some(error) } }
    }
}

impl<F, A, Req, Res, E> Future for LoopGuardFuture<F, A, Req, Res>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
    A: LoopPolicy<Req, Res>,
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

debug_parts! {
    LoopGuardFuture<F, A: LoopPolicy<Req, Res>, Req, Res>,
    |it| refused = matches!(it.state, State::Refused { .. })
}
