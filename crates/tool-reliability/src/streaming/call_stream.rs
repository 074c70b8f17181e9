//! A call whose answer is a stream of outcomes.
use crate::errors_as_outcomes::outcome;
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_core::{
    BoxError, Chunk, Json, OutcomeParts, Replay, SplitContent, ToolCall, ToolOutcome,
    chunks::{ChunkLimits, ChunkReceiver, channel},
    debug_parts,
    internal::ReadyOnCallFuture,
};

/// Calls a service and gives its answers in chunks.
#[derive(Clone, Debug)]
pub struct Streaming<S> {
    inner: S,
    limits: ChunkLimits,
}

impl<S> Streaming<S> {
    /// For calls of `inner`, with the default [`ChunkLimits`].
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self { inner, limits: ChunkLimits::default() }
    }

    /// Sets how many chunks wait for a slow consumer, and how long an answer is kept for records.
    #[must_use]
    pub const fn limits(mut self, limits: ChunkLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes a call, once the stream is polled. The tool sees that the caller
    /// [prefers](tr_core::call::CallHints::prefer_streaming) chunks; one that does not stream
    /// answers with one.
    pub fn stream(&self, mut call: ToolCall) -> CallStream<S, S::Future>
    where
        S: Service<ToolCall> + Clone,
    {
        let (chunks, receiver) = channel(self.limits);
        let parts = call.parts_mut();
        (parts.chunks, parts.hints.prefer_streaming) = (Some(chunks), true);
        let call = ReadyOnCallFuture::waiting(self.inner.clone(), call);
        CallStream { state: State::Running { call }, receiver, index: 0 }
    }
}

pin_project! {
    /// The outcomes of one call: its chunks, and its end as the last one, which is marked.
    ///
    /// It never fails: an error is the last outcome, as by [`ErrorsAsOutcomes`](crate::ErrorsAsOutcomes). A
    /// stream that is dropped drops its call.
    #[must_use = "streams do nothing unless polled"]
    pub struct CallStream<S, F> {
        #[pin]
        state: State<S, F>,
        receiver: ChunkReceiver,
        index: u64,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, F> {
        // The call runs, and its chunks are passed on.
        Running { #[pin] call: ReadyOnCallFuture<S, F, ToolCall> },
        // It has ended; chunks still wait.
        Ended { end: Option<ToolOutcome> },
        // The chunks are from a record, or from another caller's run.
        Replaying { split: SplitContent, replay: Option<Replay>, end: Option<ToolOutcome> },
        Over,
    }
}

/// One chunk as an outcome.
fn item(content: Json, index: &mut u64, replay: Option<Replay>) -> ToolOutcome {
    let mut parts = OutcomeParts::default();
    parts.content = Some(content);
    parts.chunk = Some(Chunk { index: *index, last: false });
    *index += 1;
    replay.into_iter().fold(parts.into(), ToolOutcome::replayed)
}

/// What the last outcome has to say after chunks that were passed on as they came.
fn closing(end: &ToolOutcome) -> Option<Json> {
    match end.pieces() {
        None => end.content().cloned(),
        Some(pieces) if !pieces.closes() => None,
        Some(_) => end.split_content()?.closing(),
    }
}

impl<S, F, E> Stream for CallStream<S, F>
where
    S: Service<ToolCall, Response = ToolOutcome, Error = E, Future = F>,
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Item = ToolOutcome;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ToolOutcome>> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Running { call } => {
                    let mut next = this.receiver.poll_next(cx);
                    // The call is polled each time: its deadline and its claim hold while chunks wait.
                    let end = call.poll(cx);
                    if let (Poll::Pending, Poll::Pending) = (&end, &next) {
                        next = this.receiver.poll_next(cx);
                    }
                    if let Poll::Ready(end) = end {
                        this.receiver.end();
                        let end = end.unwrap_or_else(|error| outcome(&*error.into()));
                        this.state.set(State::Ended { end: Some(end) });
                    }
                    match next {
                        Poll::Ready(Some(chunk)) => {
                            return Poll::Ready(Some(item(chunk, this.index, None)));
                        }
                        _ if matches!(*this.state, State::Ended { .. }) => continue,
                        _ => return Poll::Pending,
                    }
                }
                StateProj::Ended { end } => {
                    if let Some(chunk) = this.receiver.try_next() {
                        return Poll::Ready(Some(item(chunk, this.index, None)));
                    }
                    let end = end.take().expect("taken once");
                    let is_live = *this.index > 0;
                    if !is_live && let Some(split) = end.split_content() {
                        State::Replaying { split, replay: end.replay(), end: Some(end) }
                    } else {
                        let closing = if is_live { closing(&end) } else { end.content().cloned() };
                        this.state.set(State::Over);
                        return Poll::Ready(Some(end.into_last_chunk(*this.index, closing)));
                    }
                }
                StateProj::Replaying { split, replay, end } => {
                    if !split.is_closing()
                        && let Some(chunk) = split.next()
                    {
                        return Poll::Ready(Some(item(chunk, this.index, *replay)));
                    }
                    let (closing, end) = (split.next(), end.take().expect("taken once"));
                    this.state.set(State::Over);
                    return Poll::Ready(Some(end.into_last_chunk(*this.index, closing)));
                }
                StateProj::Over => return Poll::Ready(None),
            };
            this.state.set(next);
        }
    }
}

debug_parts! { CallStream<S, F>, |it|
    state = match it.state {
        State::Running { .. } => "running",
        State::Ended { .. } => "ended",
        State::Replaying { .. } => "replaying",
        State::Over => "over",
    },
    index = it.index
}
