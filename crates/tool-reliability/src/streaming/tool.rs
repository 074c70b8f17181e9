//! A tool that is a stream of chunks.
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::{
    BoxError, ToolCall, ToolOutcome,
    chunks::{ChunkContent, ChunkSink},
};

/// A tool service whose answers are the streams that `tool` makes. It asks a stream for the next chunk
/// when the consumer has room for it.
///
/// The stream's end is the tool's success, an error its failure. For a caller that takes no chunks, the
/// chunks are gathered to one answer of at most 1 MiB ([`StreamFn::gather_up_to`]).
pub const fn stream_fn<F>(tool: F) -> StreamFn<F> {
    StreamFn { tool, gathered_bytes: None }
}

/// A tool made by [`stream_fn`].
#[derive(Clone, Copy, Debug)]
pub struct StreamFn<F> {
    tool: F,
    gathered_bytes: Option<usize>,
}

impl<F> StreamFn<F> {
    /// Sets how long the answer may be for a caller that takes no chunks. Beyond it, the stream is read to
    /// its end, since the tool may change something, and the call fails with `answer_too_large`.
    #[must_use]
    pub const fn gather_up_to(mut self, bytes: usize) -> Self {
        self.gathered_bytes = Some(bytes);
        self
    }
}

impl<F, St, C, E> Service<ToolCall> for StreamFn<F>
where
    F: FnMut(ToolCall) -> St,
    St: Stream<Item = Result<C, E>>,
    C: Into<ChunkContent>,
    E: Into<BoxError>,
{
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = StreamFnFuture<St>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let sink = self.gathered_bytes.into_iter();
        let sink = sink.fold(call.chunk_sink(), ChunkSink::gather_up_to);
        StreamFnFuture { stream: (self.tool)(call), sink: Some(sink) }
    }
}

pin_project! {
    /// The response of a [`StreamFn`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct StreamFnFuture<St> {
        #[pin]
        stream: St,
        // `None` once it has ended.
        sink: Option<ChunkSink>,
    }
}

impl<St, C, E> Future for StreamFnFuture<St>
where
    St: Stream<Item = Result<C, E>>,
    C: Into<ChunkContent>,
    E: Into<BoxError>,
{
    type Output = Result<ToolOutcome, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let sink = this.sink.as_mut().expect("polled after completion");
        // A stream that is always ready must let others run, too.
        for _ in 0..TURN {
            ready!(sink.poll_ready(cx))?;
            match ready!(this.stream.as_mut().poll_next(cx)) {
                Some(Ok(chunk)) => sink.start_send(chunk)?,
                Some(Err(error)) => {
                    let sink = this.sink.take().expect("it is there");
                    return Poll::Ready(Err(sink.fail(error)));
                }
                None => {
                    let sink = this.sink.take().expect("it is there");
                    return Poll::Ready(Ok(sink.finish(ToolOutcome::default())));
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// How many chunks are taken in one poll.
const TURN: usize = 128;
