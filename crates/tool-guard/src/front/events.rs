//! Responses that stream server-sent events, with comments while they are silent, since proxies close connections
//! on which nothing is sent.
use super::{access::text, body::Answered};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream::unfold};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Response,
    body::Frame,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use std::time::Duration;
use tokio::time::timeout;
use tr_core::BoxError;

/// The media type of such a stream.
pub(crate) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// How long a stream is silent before a comment is sent.
const INTERVAL: Duration = Duration::from_secs(15);

/// A comment; clients ignore it.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// Whether the sender of these headers takes such a response.
pub(crate) fn are_taken(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.into_iter().any(|value| value.contains("text/event-stream"))
}

/// Whether a response is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let essence = text(headers, &CONTENT_TYPE).unwrap_or_default().split(';').next();
    essence.unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// The headers of such a response.
pub(crate) fn event_headers() -> HeaderMap {
    let no_store = HeaderValue::from_static("no-store");
    HeaderMap::from_iter([(CONTENT_TYPE, EVENTS), (CACHE_CONTROL, no_store)])
}

/// A response with these events.
pub(crate) fn stream(
    events: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> Answered {
    let mut response = Response::new(body_of(events));
    *response.headers_mut() = event_headers();
    response
}

/// The body of a response with these events.
pub(crate) fn body_of(
    events: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> UnsyncBoxBody<Bytes, BoxError> {
    let frames = keep_alive(events).map(|event| event.map(Frame::data));
    StreamBody::new(frames).boxed_unsync()
}

/// A message as an event; the id and the other fields of the event that it came in stay.
pub(crate) fn event(message: &[u8], came_in: Option<&[u8]>) -> Bytes {
    let mut event = BytesMut::with_capacity(message.len() + 16);
    let fields =
        came_in.into_iter().flat_map(|raw| raw.split(|byte| matches!(byte, b'\n' | b'\r')));
    for field in fields {
        let name = field.split(|byte| *byte == b':').next().unwrap_or_default();
        if matches!(name, b"id" | b"event" | b"retry") {
            event.extend_from_slice(field);
            event.extend_from_slice(b"\n");
        }
    }
    let lines = message.trim_ascii_end().split(|byte| matches!(byte, b'\n' | b'\r'));
    for line in lines.filter(|line| !line.is_empty()) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.extend_from_slice(b"\n");
    }
    event.extend_from_slice(b"\n");
    event.freeze()
}

/// The last event of a stream: the LF after its CR comes on its own, and readers of CRLF wait for it.
pub(crate) fn ended(event: Bytes) -> Bytes {
    if event.ends_with(b"\r") { [&event[..], b"\n"].concat().into() } else { event }
}

/// The events, and a comment after each [`INTERVAL`] without one.
fn keep_alive(
    events: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    unfold(Box::pin(events), |mut events| async move {
        match timeout(INTERVAL, events.next()).await {
            Ok(event) => Some((event?, events)),
            Err(_) => Some((Ok(COMMENT), events)),
        }
    })
    .fuse()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use tokio::{sync::mpsc, time::Instant};

    #[test]
    fn a_last_event_is_whole_for_readers_of_crlf() {
        for (came, sent) in [
            ("data: x\n\n", "data: x\n\n"),
            ("data: x\r\n\r\n", "data: x\r\n\r\n"),
            ("data: x\r\n\r", "data: x\r\n\r\n"),
        ] {
            assert_eq!(ended(came.into()), sent);
        }
    }

    #[test]
    fn a_changed_message_keeps_the_fields_of_its_event() {
        let raw = b"event: message\r\nid: 7\r\ndata: {\"a\":1}\r\n\r\n";
        assert_eq!(event(b"{\"b\":2}\n", Some(raw)), "event: message\nid: 7\ndata: {\"b\":2}\n\n");
        assert_eq!(event(b"{\n\"b\":2}", None), "data: {\ndata: \"b\":2}\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_sends_comments() {
        let (send, mut receive) = mpsc::unbounded_channel();
        let events = stream::poll_fn(move |cx| receive.poll_recv(cx)).map(Ok);
        let events = keep_alive(events).map(Result::unwrap);
        let mut events = Box::pin(events);
        let start = Instant::now();
        let event = Bytes::from_static(b"data: 1\n\n");
        send.send(event.clone()).unwrap();
        assert_eq!((events.next().await, start.elapsed()), (Some(event.clone()), Duration::ZERO));
        assert_eq!((events.next().await, start.elapsed()), (Some(COMMENT), INTERVAL));
        assert_eq!((events.next().await, start.elapsed()), (Some(COMMENT), INTERVAL * 2));
        send.send(event.clone()).unwrap();
        assert_eq!((events.next().await, start.elapsed()), (Some(event), INTERVAL * 2));
        drop(send);
        assert_eq!(events.next().await, None);
    }
}
