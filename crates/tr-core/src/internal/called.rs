//! A running call of an inner service, or the error that replaces it.
use crate::BoxError;
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll},
};

pin_project! {
    /// A running call, or the error that replaces it.
    #[derive(Debug)]
    pub struct Called<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    #[derive(Debug)]
    enum State<F> {
        Called { #[pin] inner: F },
        Rejected { error: Option<BoxError> },
    }
}

impl<F> Called<F> {
    #[inline]
    pub const fn new(inner: F) -> Self {
        Self { state: State::Called { inner } }
    }

    /// It was not called.
    pub const fn not(error: BoxError) -> Self {
        Self { state: State::Rejected { error: Some(error) } }
    }

    pub const fn is_called(&self) -> bool {
        matches!(self.state, State::Called { .. })
    }
}

impl<F, T, E> Future for Called<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Called { inner } => inner.poll(cx).map_err(Into::into),
            StateProj::Rejected { error } => {
                Poll::Ready(Err(error.take().expect("polled after completion")))
            }
        }
    }
}
