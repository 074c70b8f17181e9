//! The future of one request.
use super::{
    answer::Answer,
    running::{Stop, Token},
};
use crate::{cancel::CallCancelled, measured::MeasuredFuture};
use pin_project_lite::pin_project;
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tr_core::{BoxError, Ran, ToolOutcome, debug_parts};
use tr_wire::Form;

pin_project! {
    /// The response of [`Envelopes`](super::Envelopes). Dropping it does not cancel the call: one with a key
    /// runs to its end and is recorded.
    #[must_use = "futures do nothing unless polled"]
    pub struct EnvelopesFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        /// The request is no call.
        Refused { answer: Option<Answer> },
        /// It is called.
        Called { #[pin] call: MeasuredFuture<F>, form: Form, stop: Stop },
    }
}

impl<F> EnvelopesFuture<F> {
    pub(super) const fn refused(answer: Answer) -> Self {
        Self { state: State::Refused { answer: Some(answer) } }
    }

    pub(super) fn new(form: Form, call: MeasuredFuture<F>, token: Option<Arc<Token>>) -> Self {
        Self { state: State::Called { call, form, stop: Stop::new(token) } }
    }
}

impl<F, E> Future for EnvelopesFuture<F>
where
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Answer, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Refused { answer } => {
                Poll::Ready(Ok(answer.take().expect("polled after completion")))
            }
            StateProj::Called { mut call, form, stop } => {
                let finished = match ready!(stop.poll(cx, |cx| call.as_mut().poll(cx))) {
                    Some(Ok(finished)) => finished,
                    None => call.finish(Err(CallCancelled::new(Ran::Unknown).into())),
                };
                stop.end();
                Poll::Ready(Ok(Answer::new(*form, finished)))
            }
        }
    }
}

debug_parts! { EnvelopesFuture<F>, |it|
    state = match it.state {
        State::Refused { .. } => "Refused",
        State::Called { .. } => "Called",
    }
}
