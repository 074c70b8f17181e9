//! The answers to one request: one, or as many as its tool gives.
use super::{
    answer::Answer, call::EnvelopeRequest, future::EnvelopesFuture, running::Stop,
    service::Envelopes,
};
use crate::{
    cancel::CallCancelled,
    errors_as_outcomes::outcome,
    measured::Measure,
    streaming::{CallStream, Streaming},
};
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::{BoxError, Ran, ToolCall, ToolOutcome, debug_parts, internal::ReadyOnCallFuture};
use tr_wire::Form;

impl<S> Envelopes<S>
where
    S: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>> + Clone,
{
    /// The answers to a request, once the stream is polled.
    ///
    /// A request of UTEE with `preferStreaming` is answered in chunks: each is a response with `chunkIndex`
    /// and status `partial`; the last has `finalChunk` and says how the call ended. A tool that does not
    /// stream gives one chunk. Every other request has one answer; BS-TIM-5 has no chunks.
    ///
    /// The call goes on only while the stream is polled. A dropped stream is a dropped call.
    pub fn answers(&self, request: EnvelopeRequest) -> Answers<S, S::Future> {
        let mut prepared = match self.prepare(request) {
            Ok(prepared) => prepared,
            Err(answer) => return Answers { state: State::Refused { answer: Some(answer) } },
        };
        if prepared.form == Form::BsTim5 || !prepared.call.parts().hints.prefer_streaming {
            let call = ReadyOnCallFuture::waiting(self.clone(), prepared.into());
            return Answers { state: State::One { call, is_over: false } };
        }
        let measure = Measure::of(&mut prepared.call);
        let chunks = Streaming::new(self.inner().clone()).stream(prepared.call);
        let context = AnswerContext { measure, index: 0, is_over: false };
        Answers { state: State::Many { chunks, context, stop: Stop::new(prepared.token) } }
    }
}

pin_project! {
    /// The answers to one request of [`Envelopes::answers`].
    #[must_use = "streams do nothing unless polled"]
    pub struct Answers<S, F> {
        #[pin]
        state: State<S, F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, F> {
        // The request is no call, and this is its answer; or all was said.
        Refused { answer: Option<Answer> },
        // One answer.
        One {
            #[pin]
            call: ReadyOnCallFuture<Envelopes<S>, EnvelopesFuture<F>, EnvelopeRequest>,
            is_over: bool,
        },
        // An answer for each chunk.
        Many {
            #[pin]
            chunks: CallStream<S, F>,
            context: AnswerContext,
            stop: Stop,
        },
    }
}

/// What answers say beside their chunk.
struct AnswerContext {
    measure: Measure,
    /// Of the next chunk.
    index: u64,
    /// The last answer was given.
    is_over: bool,
}

impl AnswerContext {
    fn answer(&mut self, outcome: ToolOutcome) -> Answer {
        let chunk = outcome.parts().chunk;
        self.index = chunk.map_or(self.index, |chunk| chunk.index + 1);
        self.is_over = chunk.is_none_or(|chunk| chunk.last);
        Answer::new(Form::Utee, self.measure.finished(Ok(outcome)))
    }

    fn cancelled(&mut self) -> Answer {
        let error = CallCancelled::new(Ran::Unknown);
        self.answer(outcome(&error).into_last_chunk(self.index, None))
    }
}

impl<S, F> Answers<S, F> {
    /// Whether the answer comes in chunks.
    #[must_use]
    pub const fn is_streaming(&self) -> bool {
        matches!(self.state, State::Many { .. })
    }
}

impl<S, F, E> Stream for Answers<S, F>
where
    S: Service<ToolCall, Response = ToolOutcome, Error = E, Future = F> + Clone,
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Item = Answer;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let mut this = self.project();
        let (mut chunks, context, stop) = match this.state.as_mut().project() {
            StateProj::Refused { answer } => return Poll::Ready(answer.take()),
            StateProj::One { is_over: true, .. } => return Poll::Ready(None),
            StateProj::One { call, is_over } => {
                let Ok(answer) = ready!(call.poll(cx));
                *is_over = true;
                return Poll::Ready(Some(answer));
            }
            StateProj::Many { chunks, context, stop } => (chunks, context, stop),
        };
        let next = ready!(stop.poll(cx, |cx| chunks.as_mut().poll_next(cx)));
        let answer = match next.flatten() {
            Some(outcome) => context.answer(outcome),
            None => context.cancelled(),
        };
        if context.is_over {
            stop.end();
            this.state.set(State::Refused { answer: None });
        }
        Poll::Ready(Some(answer))
    }
}

debug_parts! { Answers<S, F>, |it|
    state = match it.state {
        State::Refused { .. } => "refused, or over",
        State::One { .. } => "one",
        State::Many { .. } => "many",
    }
}
