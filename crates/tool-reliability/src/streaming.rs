//! Answers in chunks: the door for callers that take them, and the adapter for tools that stream.
//!
//! # When to use
//!
//! [`Streaming`] around a guarded tool, to get its answer as a stream of outcomes. [`stream_fn`] for a
//! tool that is a stream of chunks; a tool that is more than that writes to
//! [`ToolCall::chunk_sink`](tr_core::ToolCall::chunk_sink).
//!
//! # Example
//!
//! ```
//! use futures_util::{StreamExt, stream};
//! use std::pin::pin;
//! use tool_reliability::{ToolStack, streaming::{Streaming, stream_fn}};
//! use tr_core::{BoxError, Params, ToolCall};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let tail = stream_fn(|_: ToolCall| {
//!     stream::iter(["one ", "two ", "three"]).map(Ok::<_, BoxError>)
//! });
//! let tail = Streaming::new(ToolStack::default().service(tail));
//!
//! let mut answer = pin!(tail.stream(ToolCall::new("tail", Params::empty_object())));
//! let mut seen = Vec::new();
//! while let Some(outcome) = answer.next().await {
//!     let chunk = outcome.parts().chunk.expect("all are marked");
//!     seen.push((chunk.index, chunk.last, outcome.content().map(|text| text.get().to_owned())));
//! }
//! let text = |text: &str| Some(format!("\"{text}\""));
//! let all = [(0, false, text("one ")), (1, false, text("two ")), (2, false, text("three")), (3, true, None)];
//! assert_eq!(seen, all);
//! # }
//! ```
//!
//! # What holds
//!
//! - The layers see one call and, at its end, one outcome with the whole answer. Chunks pass them by.
//! - Chunks come in order, with the index from 0. The last outcome is the end of the call: it is marked,
//!   and has the content that the tool gave with its outcome, or none, or the error.
//! - A slow consumer slows the tool: [`ChunkLimits`] says how many chunks wait.
//! - No retry after the first chunk. The attempt timeout holds up to it, then the
//!   [idle timeout](crate::timeout::AttemptTimeoutBuilder::idle); the deadline holds for all.
//! - A replay of a success has the same chunks, byte for byte, if the whole answer is not longer than
//!   [`ChunkLimits::kept_bytes`] and what the records keep of one answer. A failure is replayed without
//!   the chunks before it, also to those that waited for it.
//! - The call goes on only while the stream is polled, as with any future. Where the consumer may take
//!   longer than the call's deadline or its claim allow, it should read the stream in a task of its own.
//! - A dropped stream is a dropped call. One with a key whose tool has started runs to its end, and is
//!   recorded with all of its answer.
mod call_stream;
mod tool;

pub use self::{
    call_stream::{CallStream, Streaming},
    tool::{StreamFn, StreamFnFuture, stream_fn},
};
pub use tr_core::chunks::{ChunkContent, ChunkLimits, ChunkSink};
