//! What is behind the door for clients over HTTP, a server at an address or servers that run a command: what is posted
//! to it, and what is heard.
use super::{
    answer,
    failure::Failure,
    out::Sent,
    presence::{Presence, Watched},
};
use crate::{
    front::body::{Answered, respond},
    wire::{
        batch,
        jsonrpc::{self, Line, Token},
        lines::Oversized,
    },
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use hyper::{HeaderMap, Request, Response, StatusCode, Uri, http::request::Parts};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

/// A server, to which messages are posted one by one.
pub(crate) trait Backend: Clone + Send + Sync + 'static {
    /// The server as a request at this address reaches it.
    fn at(&self, _: &Uri) -> Self {
        self.clone()
    }

    /// The path of the endpoint.
    fn path(&self) -> &str;

    /// Whether no server of HTTP is behind, which resumes streams itself: then the guard checks what such a server
    /// checks.
    const IS_COMMAND: bool = false;

    /// # Errors
    /// If this request can have no call: its session is not known.
    fn admit(&self, _: &Parts) -> Result<(), Box<Answered>> {
        Ok(())
    }

    /// Whether the server has accepted a request with this session and this credential.
    fn has_answered(&self, _: &Parts) -> bool {
        false
    }

    /// Sends a message, of a client whose presence tells whether it is there.
    fn post(&self, posted: Posted, presence: Option<&Presence>) -> EventStream;

    /// The response to a guarded call as its client gets it.
    fn kept(&self, _: &HeaderMap, answer: Answered, _: &Watched) -> Answered {
        answer
    }

    /// Answers a request that is no guarded call.
    fn other(&self, request: Request<Bytes>) -> impl Future<Output = Answered> + Send;
}

/// A response with a JSON-RPC error of the guard's.
pub(crate) fn refused(status: StatusCode, id: &str, code: i64, why: &str) -> Answered {
    respond(status, answer::refusal(id, code, why))
}

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
pub(crate) enum ServerEvent {
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

impl ServerEvent {
    /// A message that came as this line.
    pub(crate) fn line(line: Bytes, answers: bool) -> Self {
        Self::Message { raw: line.clone(), line, answers }
    }
}

/// What is heard after a message was posted, or of the server itself.
pub(crate) struct EventStream {
    heard: Pin<Box<dyn Stream<Item = ServerEvent> + Send>>,
    is_sent: Arc<AtomicBool>,
}

impl EventStream {
    pub(crate) fn of(
        heard: impl Stream<Item = ServerEvent> + Send + 'static,
        is_sent: Arc<AtomicBool>,
    ) -> Self {
        Self { heard: Box::pin(heard), is_sent }
    }

    /// What is heard of what waits for no preflight.
    pub(crate) fn of_sent(heard: impl Stream<Item = ServerEvent> + Send + 'static) -> Self {
        Self::of(heard, Arc::new(true.into()))
    }

    pub(crate) fn only(heard: ServerEvent) -> Self {
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
    hearing: impl Fn(&mut T) -> &mut EventStream,
) -> (usize, Option<ServerEvent>) {
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

/// What a message asks for.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    /// The id of the answer, if it is one request.
    pub(crate) id: Option<Token>,
    /// Whether it opens a session.
    pub(crate) is_initialize: bool,
    /// Whether the stream of its answer lasts, and is never resumed.
    pub(crate) is_subscription: bool,
}

impl Asks {
    pub(crate) fn of(body: &[u8]) -> Self {
        let Line::One(message) = jsonrpc::read(body) else { return Self::default() };
        let Some(method) = message.method.as_deref() else { return Self::default() };
        Self {
            id: message.token(),
            is_initialize: method == "initialize",
            is_subscription: method == "subscriptions/listen",
        }
    }
}

/// Whether the message is an answer under this id.
pub(crate) fn answers(line: &Bytes, id: &Token) -> bool {
    match jsonrpc::read(line) {
        Line::Batch => batch::answered(line).any(|it| it == *id),
        read => read.answered(line).as_ref() == Some(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_id_of_the_request() {
        let id = Asks::of(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#).id.unwrap();
        for line in [
            r#"{"id":7,"result":{}}"#,
            r#"{"id":7.0,"error":{}}"#,
            r#"{"id":7,"result":NaN}"#,
            r#"[{"id":6,"result":{}},{"id":7,"result":{}}]"#,
            r#"[{"jsonrpc":"2.0","id":7,"result":{},"jsonrpc":"2.0"}]"#,
        ] {
            assert!(answers(&Bytes::from(line), &id), "{line}");
        }
        for line in [
            r#"{"id":8,"result":{}}"#,
            r#"{"id":"7","result":{}}"#,
            r#"{"id":7,"method":"ping"}"#,
            r#"{"id":null,"error":{}}"#,
            r#"{"id":8,"result":NaN}"#,
            r#"[{"id":7,"method":"ping"}]"#,
            "<html>",
            "",
        ] {
            assert!(!answers(&Bytes::from(line), &id), "{line}");
        }
    }

    #[test]
    fn only_a_request_is_answered() {
        for line in [
            r#"{"method":"notifications/initialized"}"#,
            r#"{"id":7,"result":{}}"#,
            r#"[{"id":7,"method":"ping"}]"#,
            "{",
        ] {
            assert_eq!(Asks::of(line.as_bytes()).id, None, "{line}");
        }
    }
}
