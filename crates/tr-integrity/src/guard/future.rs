//! The future of a guarded call.
use super::{
    error::SessionCorrupt,
    take::{Guarded, Take, Whole},
};
use pin_project_lite::pin_project;
use std::{
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tr_core::BoxError;

pin_project! {
    /// The response of a [`ModelGuard`](crate::ModelGuard).
    #[derive(Debug)]
    pub struct ModelGuardFuture<F, A, M = Whole> {
        #[pin]
        state: State<F>,
        answers: A,
        mode: PhantomData<M>,
    }
}

pin_project! {
    #[project = StateProj]
    #[derive(Debug)]
    enum State<F> {
        Called { #[pin] inner: F, call: Option<Guarded> },
        Blocked { error: Option<Box<SessionCorrupt>> },
    }
}

impl<F, A, M> ModelGuardFuture<F, A, M> {
    pub(super) const fn called(inner: F, call: Guarded, answers: A) -> Self {
        let state = State::Called { inner, call: Some(call) };
        Self { state, answers, mode: PhantomData }
    }

    pub(super) const fn blocked(error: Box<SessionCorrupt>, answers: A) -> Self {
        Self { state: State::Blocked { error: Some(error) }, answers, mode: PhantomData }
    }
}

impl<F, A, M, T, E> Future for ModelGuardFuture<F, A, M>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    M: Take<A, T>,
{
    type Output = Result<M::Taken, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (inner, call) = match this.state.project() {
            StateProj::Called { inner, call } => (inner, call),
            StateProj::Blocked { error } => {
                return Poll::Ready(Err(error.take().expect("polled after completion")));
            }
        };
        let answer = ready!(inner.poll(cx)).map_err(Into::into);
        let call = call.take().expect("polled after completion");
        Poll::Ready(M::take(this.answers, answer, call))
    }
}
