//! The future of a recorded call.
use super::open::OpenCycle;
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tr_core::{AnswerOf, BoxError};

pin_project! {
    /// The response of an [`Integrity`](crate::Integrity).
    #[derive(Debug)]
    pub struct IntegrityFuture<F, A> {
        // Before the cycle: the tool is dropped before its cycle is given up.
        #[pin]
        inner: F,
        cycle: Option<OpenCycle>,
        answers: A,
    }
}

impl<F, A> IntegrityFuture<F, A> {
    pub(super) const fn new(inner: F, cycle: Option<OpenCycle>, answers: A) -> Self {
        Self { inner, cycle, answers }
    }
}

impl<F, A, T, E> Future for IntegrityFuture<F, A>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    A: AnswerOf<T>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let end = ready!(this.inner.poll(cx)).map_err(Into::into);
        if let Some(cycle) = this.cycle.take() {
            match &end {
                Ok(response) => cycle.finish(&this.answers.answer_of(Ok(response))),
                Err(error) => cycle.fail(&this.answers.answer_of(Err(&**error))),
            }
        }
        Poll::Ready(end)
    }
}
