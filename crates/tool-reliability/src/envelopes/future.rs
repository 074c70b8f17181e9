//! The future of one request.
use super::{answer::Answer, running::Token};
use crate::{cancel::CallCancelled, measured::MeasuredFuture};
use pin_project_lite::pin_project;
use std::{
    convert::Infallible,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::task::coop;
use tr_core::{BoxError, Cancellation as _, Ran, ToolOutcome, debug_parts};
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

type Cancelled = Pin<Box<dyn Future<Output = ()> + Send>>;

pin_project! {
    #[project = StateProj]
    enum State<F> {
        /// The request is no call.
        Refused { answer: Option<Answer> },
        /// It is called, and nothing can cancel it.
        Called { #[pin] call: MeasuredFuture<F>, form: Form },
        /// It is called, and has an id to be cancelled by.
        Cancellable {
            #[pin]
            call: MeasuredFuture<F>,
            form: Form,
            token: Arc<Token>,
            cancelled: Cancelled,
            begun: bool,
        },
    }
}

impl<F> EnvelopesFuture<F> {
    pub(super) const fn refused(answer: Answer) -> Self {
        Self { state: State::Refused { answer: Some(answer) } }
    }

    pub(super) fn new(form: Form, call: MeasuredFuture<F>, token: Option<Arc<Token>>) -> Self {
        let state = match token {
            None => State::Called { call, form },
            Some(token) => {
                let cancelled = token.cancelled();
                State::Cancellable { call, form, token, cancelled, begun: false }
            }
        };
        Self { state }
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
            StateProj::Called { call, form } => {
                call.poll(cx).map_ok(|finished| Answer::new(*form, finished))
            }
            StateProj::Cancellable { mut call, form, token, cancelled, begun } => {
                // Unconstrained, so that a call which uses up the task's budget does not block its
                // cancellation.
                let mut is_cancelled = |cx: &mut Context<'_>| {
                    Pin::new(&mut coop::unconstrained(cancelled.as_mut())).poll(cx).is_ready()
                };
                let finished = if !mem::replace(begun, true) && is_cancelled(cx) {
                    // It does not begin.
                    call.finish(Err(CallCancelled::new(Ran::Unknown).into()))
                } else if let Poll::Ready(Ok(finished)) = call.as_mut().poll(cx) {
                    finished
                } else if !is_cancelled(cx) {
                    return Poll::Pending;
                } else if let Poll::Ready(Ok(finished)) = call.as_mut().poll(cx) {
                    // Inner layers know whether the tool ran.
                    finished
                } else {
                    call.finish(Err(CallCancelled::new(Ran::Unknown).into()))
                };
                token.leave();
                Poll::Ready(Ok(Answer::new(*form, finished)))
            }
        }
    }
}

debug_parts! { EnvelopesFuture<F>, |it|
    state = match it.state {
        State::Refused { .. } => "Refused",
        State::Called { .. } => "Called",
        State::Cancellable { .. } => "Cancellable",
    }
}
