//! The stream of a response that outlives its connection, so that the client can resume it.
use super::replay::{MAX_BYTES, Next, PATIENCE, Replay};
use crate::{
    engine::{
        equal_calls::{Cut, Uncut},
        presence::{Presence, Watched},
    },
    front::{body::Answered, events::body_of},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, task::AtomicWaker};
use http_body_util::BodyExt as _;
use hyper::header::CONTENT_LENGTH;
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tokio::time::{Instant, sleep_until};
use tr_core::{BoxError, internal::lock};

/// An event that gives the client an id before there is anything to say.
const FIRST: &[u8] = b"data: \n\n";

/// A stream that can be resumed.
#[derive(Clone, Debug)]
pub(super) struct Kept(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    replay: Replay,
    /// Who reads it now, and the last event that it got.
    reader: Option<(u64, u64)>,
    readers: u64,
    /// Since when no client reads it.
    unread_since: Instant,
    to_read: AtomicWaker,
    to_write: AtomicWaker,
    call: Option<Call>,
    presence: Presence,
}

/// The call without a strong id whose answer the stream carries.
#[derive(Debug)]
enum Call {
    Waits(Uncut),
    /// Its client vanished, and may resume the stream.
    Cut(Cut),
}

impl Kept {
    pub(super) fn new(stream: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            replay: Replay::new(stream),
            reader: None,
            readers: 0,
            unread_since: Instant::now(),
            to_read: AtomicWaker::new(),
            to_write: AtomicWaker::new(),
            call: None,
            presence: Presence::default(),
        })))
    }

    /// Keeps the events of a response; returns the response with their ids, and before them an event that says nothing
    /// else. `ended` is called when the stream can no longer be resumed.
    pub(super) fn keep(
        &self,
        response: Answered,
        ended: impl FnOnce() + Send + 'static,
    ) -> Answered {
        let (head, body) = response.into_parts();
        let mut body = body.into_data_stream();
        self.push(FIRST);
        let read = self.read(0);
        let kept = self.clone();
        tokio::spawn(async move {
            let carried = async {
                while let Some(Ok(event)) = body.next().await {
                    if !event.starts_with(b":") {
                        kept.has_room().await;
                        kept.push(&event);
                    }
                }
                lock(&kept.0).end();
            };
            tokio::select! {
                biased;
                () = kept.given_up() => {}
                () = carried => kept.given_up().await,
            }
            // It also ends the exchange's part in it.
            drop(body);
            lock(&kept.0).end();
            ended();
        });
        let mut response = hyper::Response::from_parts(head, body_of(read));
        response.headers_mut().remove(CONTENT_LENGTH);
        response
    }

    /// Sets the call whose answer the stream carries.
    pub(super) fn watch(&self, watched: &Watched) {
        let mut state = lock(&self.0);
        state.call = watched.take().map(Call::Waits);
        state.presence = watched.presence.clone();
    }

    /// Adds an event.
    pub(super) fn push(&self, event: &[u8]) {
        let mut state = lock(&self.0);
        let read = state.reader.map(|(_, number)| number);
        state.replay.push(event, read, Instant::now().into_std());
        state.to_read.wake();
    }

    /// The events after this one, and those that follow; who read it before gets no more.
    pub(super) fn read(&self, after: u64) -> Read {
        let mut state = lock(&self.0);
        state.presence.here();
        state.readers += 1;
        state.reader = Some((state.readers, after));
        state.call = match state.call.take() {
            Some(Call::Cut(cut)) => cut.withdraw().map(Call::Waits),
            call => call,
        };
        state.to_read.wake();
        Read { kept: self.clone(), reader: state.readers }
    }

    /// Whether the events after this one are kept.
    pub(super) fn has(&self, after: u64) -> bool {
        lock(&self.0).replay.after(after) != Next::Lost
    }

    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        lock(&self.0).replay.last
    }

    /// Whether nothing is added any more.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.0).replay.ended
    }

    /// Forgets old events.
    pub(super) fn trim(&self) {
        let mut state = lock(&self.0);
        let read = state.reader.map(|(_, number)| number);
        state.replay.trim(read, Instant::now().into_std());
    }

    /// Waits until the client has taken enough.
    async fn has_room(&self) {
        poll_fn(|cx| {
            let state = lock(&self.0);
            match state.reader {
                Some((_, number)) if state.replay.unread(number) >= MAX_BYTES => {
                    state.to_write.register(cx.waker());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Waits until no client has read it for so long that none will.
    async fn given_up(&self) {
        let mut at = Instant::now() + PATIENCE;
        loop {
            sleep_until(at).await;
            let state = lock(&self.0);
            at = match state.reader {
                Some(_) => Instant::now() + PATIENCE,
                None => state.unread_since + PATIENCE,
            };
            if at <= Instant::now() {
                return;
            }
        }
    }
}

impl State {
    /// The client has all of it.
    fn receive(&mut self) {
        if let Some(Call::Waits(call)) = self.call.take() {
            call.received();
        }
    }

    fn end(&mut self) {
        self.replay.ended = true;
        self.to_read.wake();
    }
}

/// The events of a stream, for one connection.
#[derive(Debug)]
pub(super) struct Read {
    kept: Kept,
    reader: u64,
}

impl Stream for Read {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = lock(&self.kept.0);
        let reads = state.reader.filter(|(reader, _)| *reader == self.reader);
        let Some((reader, number)) = reads else { return Poll::Ready(None) };
        match state.replay.after(number) {
            Next::Event(bytes) => {
                state.reader = Some((reader, number + 1));
                state.replay.trim(Some(number + 1), Instant::now().into_std());
                if state.replay.after(number + 1) == Next::End {
                    state.receive();
                }
                state.to_write.wake();
                Poll::Ready(Some(Ok(bytes)))
            }
            Next::Nothing => {
                state.to_read.register(cx.waker());
                Poll::Pending
            }
            Next::End => {
                state.receive();
                Poll::Ready(None)
            }
            Next::Lost => {
                state.call = None;
                Poll::Ready(None)
            }
        }
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        let mut state = lock(&self.kept.0);
        if state.reader.is_some_and(|(reader, _)| reader == self.reader) {
            state.reader = None;
            state.presence.away();
            state.call = match state.call.take() {
                Some(Call::Waits(call)) => Some(Call::Cut(call.cut())),
                call => call,
            };
            state.unread_since = Instant::now();
            state.to_write.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use futures_util::stream;
    use hyper::Response;
    use std::time::Duration;
    use tokio::sync::{mpsc, oneshot};

    type Sender = mpsc::UnboundedSender<Bytes>;

    /// A response that streams what is sent, and what tells its end.
    fn response() -> (Answered, Sender) {
        let (sender, mut events) = mpsc::unbounded_channel();
        let events = stream::poll_fn(move |cx| events.poll_recv(cx)).map(Ok);
        (Response::new(body_of(events)), sender)
    }

    async fn event(body: &mut Answered) -> Option<String> {
        loop {
            let bytes = body.body_mut().frame().await?.unwrap().into_data().unwrap();
            if !bytes.starts_with(b":") {
                return Some(String::from_utf8(bytes.to_vec()).unwrap());
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_was_cut_goes_on_where_it_was() {
        let (inner, sender) = response();
        let kept = Kept::new(5);
        let (told, ended) = oneshot::channel();
        let mut outer = kept.keep(inner, || told.send(()).unwrap());
        assert_eq!(event(&mut outer).await.unwrap(), "id: 5-1\ndata: \n\n");
        sender.send("data: a\n\n".into()).unwrap();
        assert_eq!(event(&mut outer).await.unwrap(), "id: 5-2\ndata: a\n\n");
        drop(outer);
        sender.send("data: b\n\n".into()).unwrap();
        drop(sender);
        tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
        assert!(kept.has(1));
        let mut again = Response::new(body_of(kept.read(1)));
        assert_eq!(event(&mut again).await.unwrap(), "id: 5-2\ndata: a\n\n");
        assert_eq!(event(&mut again).await.unwrap(), "id: 5-3\ndata: b\n\n");
        assert_eq!(event(&mut again).await, None);
        drop(again);
        let start = Instant::now();
        ended.await.unwrap();
        assert!(start.elapsed() <= PATIENCE * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_not_resumed_is_given_up() {
        let (inner, sender) = response();
        let kept = Kept::new(1);
        let outer = kept.keep(inner, || {});
        drop(outer);
        tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
        assert!(!sender.is_closed());
        sender.closed().await;
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_slows_the_stream_down() {
        let (inner, sender) = response();
        let kept = Kept::new(1);
        let mut outer = kept.keep(inner, || {});
        let big = Bytes::from(vec![b'x'; MAX_BYTES]);
        for _ in 0..4 {
            sender.send(big.clone()).unwrap();
        }
        drop(sender);
        let (mut most, mut all) = (0, 0);
        while event(&mut outer).await.is_some() {
            all += 1;
            most = most.max(lock(&kept.0).replay.unread(all));
        }
        assert_eq!(all, 5, "the first says nothing");
        assert!(most <= MAX_BYTES + 64, "{most}");
    }

    #[tokio::test]
    async fn who_resumes_takes_the_stream_over() {
        let (inner, _sender) = response();
        let kept = Kept::new(1);
        let mut outer = kept.keep(inner, || {});
        event(&mut outer).await.unwrap();
        let mut other = Response::new(body_of(kept.read(0)));
        assert_eq!(event(&mut outer).await, None);
        assert_eq!(event(&mut other).await.unwrap(), "id: 1-1\ndata: \n\n");
    }
}
