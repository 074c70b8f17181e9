//! The client's response to one exchange: one JSON body, or a stream of events.
use crate::{
    engine::answer,
    front::{
        body::{Answered, respond},
        budget::{NoRoom, hold},
        events::{body_of, event_headers},
    },
    wire::jsonrpc::{self, NOT_FORWARDED},
};
use bytes::Bytes;
use futures_util::stream::poll_fn;
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap, Response, StatusCode,
    body::{Body, Frame, SizeHint},
    header::CONTENT_LENGTH,
};
use std::{
    future::pending,
    mem,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::{mpsc, oneshot};
use tr_core::BoxError;

/// The bytes of a body that are handed out at once: while a client reads slowly, the next ones wait here, so that it
/// is known whether it got nearly all.
const AT_ONCE: usize = 16 * 1024;

/// How many events wait for a client that reads slowly.
const WAITING: usize = 64;

/// What happened on the client's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientEvent {
    /// The stream has room for another part.
    Room,
    /// The client got the last message.
    Received,
    /// The client left without it.
    Left,
}

/// The response.
#[derive(Debug)]
pub(crate) struct Reply(State);

#[derive(Debug)]
enum State {
    /// Nothing was sent.
    Waiting(oneshot::Sender<Answered>),
    /// The head was sent, and events may follow.
    Streaming(mpsc::Sender<Bytes>),
    /// All events were sent; the client has taken them when the channel is empty.
    Streamed(mpsc::Sender<Bytes>),
    /// A whole body was sent; the client may not have got it yet.
    Sent(oneshot::Receiver<()>),
    /// Nothing more will be known about the client.
    Over,
}

impl Reply {
    pub(crate) const fn new(response: oneshot::Sender<Answered>) -> Self {
        Self(State::Waiting(response))
    }

    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.0, State::Waiting(_))
    }

    pub(crate) const fn is_streaming(&self) -> bool {
        matches!(self.0, State::Streaming(_))
    }

    /// The place of the response, unless something was sent already.
    fn response(&mut self) -> Option<oneshot::Sender<Answered>> {
        match mem::replace(&mut self.0, State::Over) {
            State::Waiting(response) => Some(response),
            other => {
                self.0 = other;
                None
            }
        }
    }

    /// Begins a stream of events under this head, unless something was sent already.
    pub(crate) fn stream(&mut self, status: StatusCode, headers: Option<HeaderMap>) {
        let Some(response) = self.response() else { return };
        let (events, mut waiting) = mpsc::channel(WAITING);
        let events_of = poll_fn(move |cx| waiting.poll_recv(cx).map(|it| it.map(Ok)));
        let mut answer = Response::new(body_of(events_of));
        *answer.status_mut() = status;
        *answer.headers_mut() = headers.unwrap_or_else(event_headers);
        answer.headers_mut().remove(CONTENT_LENGTH);
        // A client that has left gets nothing.
        let _ = response.send(answer);
        self.0 = State::Streaming(events);
    }

    /// Sends a part of the stream. If too much is held for other clients, the stream ends in its place.
    pub(crate) async fn event(&mut self, bytes: Bytes) {
        let State::Streaming(events) = &self.0 else { return };
        match hold(bytes) {
            Ok(bytes) => drop(events.send(bytes).await),
            // The sender is gone: the client will not have received it.
            Err(NoRoom) => self.0 = State::Sent(oneshot::channel().1),
        }
    }

    /// Whether the stream has room for another part.
    pub(crate) fn has_room(&self) -> bool {
        match &self.0 {
            State::Streaming(events) => events.capacity() > 0 || events.is_closed(),
            _ => true,
        }
    }

    /// Ends the stream with its last part.
    pub(crate) async fn end(&mut self, bytes: Bytes) {
        self.event(bytes).await;
        self.close();
    }

    /// Sends a whole response, unless something was sent already.
    pub(crate) fn whole(&mut self, status: StatusCode, mut headers: HeaderMap, body: Bytes) {
        let Some(response) = self.response() else { return };
        headers.remove(CONTENT_LENGTH);
        let (told, received) = oneshot::channel();
        self.0 = State::Sent(received);
        let Ok(kept) = hold(body.clone()) else {
            // The client has not got it.
            let _ = response.send(respond(StatusCode::SERVICE_UNAVAILABLE, not_kept(&body)));
            return;
        };
        drop(body);
        let body = Whole { body: kept, told: Some(told) };
        let mut answer = Response::new(body.boxed_unsync());
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        let _ = response.send(answer);
    }

    /// Ends the response without another message.
    pub(crate) fn close(&mut self) {
        self.0 = match mem::replace(&mut self.0, State::Over) {
            State::Streaming(events) => State::Streamed(events),
            State::Waiting(_) => State::Over,
            other => other,
        };
    }

    /// Waits for news of the client.
    pub(crate) async fn news(&mut self) -> ClientEvent {
        let is_received = match &mut self.0 {
            State::Waiting(response) => {
                response.closed().await;
                false
            }
            State::Streaming(events) if events.capacity() == 0 => {
                if events.reserve().await.is_ok() {
                    return ClientEvent::Room;
                }
                false
            }
            State::Streaming(events) => {
                events.closed().await;
                false
            }
            State::Streamed(events) => events.reserve_many(events.max_capacity()).await.is_ok(),
            State::Sent(received) => received.await.is_ok(),
            State::Over => pending().await,
        };
        self.0 = State::Over;
        if is_received { ClientEvent::Received } else { ClientEvent::Left }
    }

    /// Whether nothing more will be known about the client.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.0, State::Over)
    }
}

/// What the client gets in place of this answer, for which there is no room.
fn not_kept(answer: &[u8]) -> Bytes {
    const WHY: &str = "the answer came, but was not kept: too many long ones that other clients have not read are held; a tool that was called has run";
    answer::refusal(&jsonrpc::id_text(answer), NOT_FORWARDED, WHY)
}

/// A body that tells when its last part was taken.
struct Whole {
    body: Bytes,
    told: Option<oneshot::Sender<()>>,
}

impl Body for Whole {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let len = self.body.len().min(AT_ONCE);
        let part = self.body.split_to(len);
        if self.body.is_empty()
            && let Some(told) = self.told.take()
        {
            let _ = told.send(());
        }
        Poll::Ready((!part.is_empty()).then(|| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_empty() && self.told.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn a_body_is_received_when_its_last_part_is_taken() {
        for len in [0, 1, AT_ONCE, AT_ONCE + 1, 5 * AT_ONCE] {
            let (response, answer) = oneshot::channel();
            let mut reply = Reply::new(response);
            reply.whole(StatusCode::OK, HeaderMap::new(), vec![b'a'; len].into());
            let mut body = answer.await.unwrap().into_body();
            let mut read = 0;
            while let Some(frame) = body.frame().await {
                read += frame.unwrap().into_data().unwrap().len();
                let is_received = reply.news().now_or_never() == Some(ClientEvent::Received);
                assert_eq!(is_received, read == len, "{read} of {len}");
                if is_received {
                    break;
                }
            }
            assert_eq!(read, len);
        }
        let (response, answer) = oneshot::channel();
        let mut reply = Reply::new(response);
        reply.whole(StatusCode::OK, HeaderMap::new(), vec![b'a'; 2 * AT_ONCE].into());
        let mut body = answer.await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert_eq!(reply.news().await, ClientEvent::Left);
    }
}
