//! What a tool writes its chunks to.
use super::{channel::Chunks, content::ChunkContent};
use crate::{BoxError, FailureInfo, Ran, ToolOutcome, Verdict, classify, code};
use std::{
    future::poll_fn,
    task::{Context, Poll},
};

/// What one attempt of a tool writes its chunks to.
///
/// If the caller takes no chunks, nothing is ever waited for, and [`finish`](Self::finish) gives the whole
/// answer. Chunks that were sent are the caller's: no other attempt follows.
#[derive(Clone, Debug)]
pub struct ChunkSink {
    chunks: Chunks,
    attempt: u32,
}

/// The attempt is over: it timed out, another one has replaced it, or its call has ended. What it
/// sends is not read.
///
/// The tool has run, at least in part ([`Ran::Unknown`]).
#[derive(Debug, thiserror::Error)]
#[error("the chunk was refused: the attempt that sent it is over")]
pub struct SinkClosed {
    #[source]
    info: FailureInfo,
}

/// An error of a tool that had sent chunks before it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct FailedLater {
    message: String,
    #[source]
    info: FailureInfo,
}

impl SinkClosed {
    const fn new() -> Self {
        Self { info: FailureInfo::new(code::CANCELLED, Ran::Unknown, Verdict::Cancelled) }
    }
}

impl ChunkSink {
    pub(crate) const fn new(chunks: Chunks, attempt: u32) -> Self {
        Self { chunks, attempt }
    }

    /// Sets how long the whole answer may be if the caller takes no chunks; 1 MiB by default.
    #[must_use]
    pub fn gather_up_to(self, bytes: usize) -> Self {
        self.chunks.limit_gathered(bytes);
        self
    }

    /// Sends a chunk, as soon as there is room. If this future is dropped, the chunk is not sent.
    ///
    /// # Errors
    /// If the attempt is over.
    pub async fn send(&mut self, chunk: impl Into<ChunkContent>) -> Result<(), SinkClosed> {
        poll_fn(|cx| self.poll_ready(cx)).await?;
        self.start_send(chunk)
    }

    /// Whether there is room for a chunk: a tool that asks before it makes one makes none in vain.
    ///
    /// # Errors
    /// If the attempt is over.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkClosed>> {
        let room = self.chunks.poll_room(self.attempt, cx);
        room.map(|room| room.ok_or(SinkClosed::new()))
    }

    /// Sends a chunk at once, room or not: call it after [`poll_ready`](Self::poll_ready).
    ///
    /// # Errors
    /// If the attempt is over.
    pub fn start_send(&mut self, chunk: impl Into<ChunkContent>) -> Result<(), SinkClosed> {
        let is_taken = self.chunks.push(self.attempt, chunk.into());
        is_taken.then_some(()).ok_or(SinkClosed::new())
    }

    /// Whether a caller reads the chunks as they come. It may have left, or take no chunks: then they only
    /// become the content of the outcome.
    #[must_use]
    pub fn has_consumer(&self) -> bool {
        self.chunks.has_consumer()
    }

    /// Ends the stream with an error. If chunks were sent, the tool has run, whatever the error says.
    #[must_use]
    pub fn fail(self, error: impl Into<BoxError>) -> BoxError {
        let error = error.into();
        let mut end = classify::error(&*error).end;
        if self.chunks.sent() == 0 || end.ran != Ran::No {
            return error;
        }
        end.ran = Ran::Unknown;
        let (message, info) = (error.to_string(), FailureInfo::of(end));
        FailedLater { message, info: info.because(error) }.into()
    }

    /// Ends the stream with the tool's outcome. Its content, if it has any, is the last chunk.
    ///
    /// The outcome gets the whole answer as its content: joined, if all chunks are texts, or else a list.
    /// If it is longer than the limit, records keep none of it; without a caller that takes chunks it
    /// is the failure `answer_too_large` of a tool that ran. A failure stays as it is.
    #[must_use]
    pub fn finish(self, outcome: ToolOutcome) -> ToolOutcome {
        self.chunks.finish(self.attempt, outcome)
    }
}
