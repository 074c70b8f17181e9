//! Responses that stream server-sent events, with comments while they are silent, since proxies close connections
//! on which nothing is sent.
use super::body::Answered;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Response,
    body::Frame,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};
use tr_core::BoxError;

/// The media type of such a stream.
pub(crate) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// How long a stream is silent before a comment is sent.
const INTERVAL: Duration = Duration::from_secs(15);

/// A comment; clients ignore it.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// The headers of such a response.
pub(crate) fn event_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
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
    let frames = KeepAlive::new(events).map(|event| event.map(Frame::data));
    StreamBody::new(frames).boxed_unsync()
}

pin_project! {
    /// The events of a stream, and a comment after each [`INTERVAL`] without one.
    struct KeepAlive<S> {
        #[pin]
        events: S,
        #[pin]
        silence: Sleep,
    }
}

impl<S> KeepAlive<S> {
    fn new(events: S) -> Self {
        Self { events, silence: sleep(INTERVAL) }
    }
}

impl<S: Stream<Item = Result<Bytes, BoxError>>> Stream for KeepAlive<S> {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let event = match this.events.poll_next(cx) {
            Poll::Ready(event) => event,
            Poll::Pending => {
                ready!(this.silence.as_mut().poll(cx));
                Some(Ok(COMMENT))
            }
        };
        this.silence.reset(Instant::now() + INTERVAL);
        Poll::Ready(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use tokio::sync::mpsc;

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_sends_comments() {
        let (send, mut receive) = mpsc::unbounded_channel();
        let events = stream::poll_fn(move |cx| receive.poll_recv(cx)).map(Ok);
        let events = KeepAlive::new(events).map(Result::unwrap);
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
