//! Answers in chunks.
//!
//! A layer's response is one [`ToolOutcome`](crate::ToolOutcome), given once. A caller that takes chunks
//! puts the sending half of a [`channel`] into its call ([`CallParts::chunks`](crate::CallParts::chunks)) and
//! reads the other; a tool that streams writes to [`ToolCall::chunk_sink`](crate::ToolCall::chunk_sink) and
//! ends with its outcome. So every layer judges the call at its end, as any other, and none has to know of
//! streams.
//!
//! ```
//! use tr_core::{BoxError, ToolCall, ToolOutcome};
//!
//! async fn report(call: ToolCall) -> Result<ToolOutcome, BoxError> {
//!     let mut sink = call.chunk_sink();
//!     for line in ["one ", "two ", "three"] {
//!         sink.send(line).await?; // waits while the caller is slow
//!     }
//!     Ok(sink.finish(ToolOutcome::default()))
//! }
//!
//! # use std::{pin::pin, task::{Context, Poll, Waker}};
//! // A caller that takes no chunks gets the whole answer.
//! let call = ToolCall::new("report", tr_core::Params::empty_object());
//! let mut answer = pin!(report(call));
//! let Poll::Ready(outcome) = answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { panic!() };
//! assert_eq!(outcome.unwrap().content().unwrap().get(), r#""one two three""#);
//! ```
//!
//! The sink keeps what it passes on, up to [`ChunkLimits::kept_bytes`], as the content of the outcome:
//! records, the loop guard and transcripts see the whole answer.
mod channel;
mod content;
mod gathered;
mod sink;

pub use self::{
    channel::{ChunkReceiver, Chunks, TooLong, channel},
    content::ChunkContent,
    sink::{ChunkSink, SinkClosed},
};

/// The limits of a channel of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkLimits {
    /// Chunks that wait for the consumer, before the tool waits; 16.
    pub buffered: usize,
    /// Bytes that wait for the consumer, before the tool waits; 256 KiB. A chunk of any size is taken
    /// if none waits.
    pub buffered_bytes: usize,
    /// Bytes of the whole answer that are kept for the outcome; 1 MiB. The outcome of a longer answer
    /// [is not kept](crate::ToolOutcome::can_be_kept) by records.
    pub kept_bytes: usize,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self { buffered: 16, buffered_bytes: 256 * 1024, kept_bytes: 1024 * 1024 }
    }
}

#[cfg(test)]
mod tests;
