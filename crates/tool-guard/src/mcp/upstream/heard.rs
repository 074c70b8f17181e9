//! What is posted to the server, and what is heard.
use crate::mcp::{failure::Failure, lines::Oversized, out::Sent};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use hyper::{HeaderMap, Response, StatusCode};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

/// A message to post.
#[derive(Debug)]
pub(crate) struct Posted {
    /// The client's headers, without those of its connection.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The attempt of a call that it begins; `None` for all other messages.
    pub(crate) attempt: Option<Sent>,
}

/// What is heard after a message was posted.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The response has begun, and is no refusal: its status, and its headers without those of the
    /// connection. Once, before all others.
    Head(StatusCode, HeaderMap),
    /// A message of the server's, and the bytes of the event, or of the body, that it came in.
    Message {
        line: Bytes,
        raw: Bytes,
        /// Whether it is known to answer the request that was posted.
        answers: bool,
    },
    /// Bytes of the stream that are no message: comments, events without data.
    Between(Bytes),
    /// A message that is longer than the limit, and was skipped.
    Oversized(Oversized),
    /// The server refused the request: it did not run, and this response is for the client.
    Refused(Box<Response<Bytes>>),
    /// The attempt, or the request, will not be answered any more.
    Failed(Failure),
}

/// What is heard after a message was posted, or of the server itself.
pub(crate) struct Hearing {
    heard: Pin<Box<dyn Stream<Item = Heard> + Send>>,
    is_sent: Arc<AtomicBool>,
}

impl Hearing {
    pub(super) fn of(
        heard: impl Stream<Item = Heard> + Send + 'static,
        is_sent: Arc<AtomicBool>,
    ) -> Self {
        Self { heard: Box::pin(heard), is_sent }
    }

    /// What is heard of what waits for no preflight.
    pub(crate) fn of_sent(heard: impl Stream<Item = Heard> + Send + 'static) -> Self {
        Self::of(heard, Arc::new(true.into()))
    }

    pub(crate) fn only(heard: Heard) -> Self {
        Self::of_sent(stream::iter([heard]))
    }

    /// Whether the first byte of the message may have left: not during its preflight.
    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Relaxed)
    }
}

/// What is heard next, and of which of them.
pub(crate) async fn next_of<T>(
    all: &mut [T],
    hearing: impl Fn(&mut T) -> &mut Hearing,
) -> (usize, Option<Heard>) {
    poll_fn(|cx| {
        for (at, one) in all.iter_mut().enumerate() {
            if let Poll::Ready(heard) = hearing(one).heard.poll_next_unpin(cx) {
                return Poll::Ready((at, heard));
            }
        }
        Poll::Pending
    })
    .await
}
