//! The response of a [`LoopGuard`](crate::LoopGuard).
use crate::watch::Watch;
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tr_core::{BoxError, LoopPolicy, debug_parts, internal::Called};

pin_project! {
    /// The response of a [`LoopGuard`](crate::LoopGuard).
    #[must_use = "futures do nothing unless polled"]
    pub struct LoopGuardFuture<F, A, Req, Res>
    where
        A: LoopPolicy<Req, Res>,
    {
        #[pin]
        pub(crate) inner: Called<F>,
        pub(crate) watch: Option<Watch<A, Req, Res>>,
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
        let this = self.project();
        let end = ready!(this.inner.poll(cx));
        Poll::Ready(match this.watch {
            Some(watch) => watch.end(end),
            None => end,
        })
    }
}

debug_parts! {
    LoopGuardFuture<F, A: LoopPolicy<Req, Res>, Req, Res>,
    |it| refused = !it.inner.is_called()
}
