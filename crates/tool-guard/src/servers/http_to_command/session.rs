//! A session: its server, its streams, and what is heard of the calls in it.
use super::{kept::Kept, replay::EventId};
use crate::{
    engine::{
        guard::Guard,
        presence::Watched,
        server_event::{EventStream, ServerEvent},
    },
    front::{
        access::TOKEN,
        body::{Answered, EndsAtOnce},
        events::{event, event_headers, is_event_stream, stream},
    },
    servers::connection::{Connection, Post},
    wire::http_names::is_from,
};
use futures_util::{
    StreamExt as _,
    stream::{iter, poll_fn},
};
use hyper::{
    HeaderMap, StatusCode,
    header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    task::{Poll, ready},
};
use tr_core::internal::lock;

/// How many requests of a session may be open.
const MAX_STREAMS: usize = 64;
/// From this version on, clients resume the stream of a request.
const RESUMES: &str = "2025-11-25";
/// The stream of what the server says unasked.
const UNASKED: u64 = 0;

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Connection,
    streams: Arc<Mutex<Streams>>,
}

#[derive(Debug)]
struct Streams {
    last: u64,
    kept: HashMap<u64, Kept>,
    unasked: Kept,
}

impl Session {
    pub(super) fn new(connection: Connection) -> Self {
        let streams = Streams { last: UNASKED, kept: HashMap::new(), unasked: Kept::new(UNASKED) };
        Self { connection, streams: Arc::new(Mutex::new(streams)) }
    }

    /// Whether no more requests may be open. A stream that may be resumed counts.
    pub(super) fn is_full(&self) -> bool {
        let kept = lock(&self.streams).kept.values().filter(|kept| !kept.has_ended()).count();
        self.connection.streams().max(kept) >= MAX_STREAMS
    }

    /// Makes the response resumable, if it is a stream and the client resumes streams.
    /// `call` is cut off while no client reads its stream.
    pub(super) fn kept(&self, headers: &HeaderMap, answer: Answered, call: &Watched) -> Answered {
        if !is_resumable(headers) || !is_event_stream(answer.headers()) {
            return answer;
        }
        let mut streams = lock(&self.streams);
        let ended = || streams.kept.iter().filter(|(_, kept)| kept.has_ended()).map(|it| *it.0);
        if ended().count() >= MAX_STREAMS
            && let Some(oldest) = ended().min()
        {
            streams.kept.remove(&oldest);
        }
        streams.last += 1;
        let number = streams.last;
        let kept = Kept::new(number);
        streams.kept.insert(number, kept.clone());
        drop(streams);
        let streams = self.streams.clone();
        kept.watch(call);
        kept.keep(answer, move || {
            lock(&streams).kept.remove(&number);
        })
    }

    /// Streams what the server says unasked, after this event, if it is still kept.
    pub(super) fn listen(
        &self,
        after: Option<u64>,
        guard: &Arc<Guard>,
        headers: &HeaderMap,
    ) -> Answered {
        let kept = lock(&self.streams).unasked.clone();
        let after = after.filter(|after| kept.has(*after)).unwrap_or_else(|| kept.last());
        if is_resumable(headers) {
            kept.push(b"data: \n\n");
        }
        let mut read = kept.read(after);
        let (mut post, guard) = (self.connection.listen(), guard.clone());
        let mut answer = stream(poll_fn(move |cx| {
            loop {
                if let Poll::Ready(event) = read.poll_next_unpin(cx) {
                    return Poll::Ready(event);
                }
                match ready!(post.poll_next_unpin(cx)) {
                    // It is kept in case that the client loses it.
                    Some(ServerEvent::Message { line, .. }) => {
                        kept.push(&event(&guard.overheard(&line), None));
                    }
                    Some(_) => {}
                    None => return Poll::Ready(None),
                }
            }
        }));
        answer.extensions_mut().insert(EndsAtOnce);
        answer
    }

    /// Resumes a stream; `None` if it is not kept any more.
    pub(super) fn resume(
        &self,
        last: EventId,
        guard: &Arc<Guard>,
        headers: &HeaderMap,
    ) -> Option<Answered> {
        if last.stream == UNASKED {
            return Some(self.listen(Some(last.number), guard, headers));
        }
        let kept = lock(&self.streams).kept.get(&last.stream).cloned()?;
        kept.has(last.number).then(|| stream(kept.read(last.number)))
    }

    /// Forgets old events.
    pub(super) fn trim(&self) {
        lock(&self.streams).unasked.trim();
    }
}

/// Whether this client resumes the streams of its requests.
pub(super) fn is_resumable(headers: &HeaderMap) -> bool {
    is_from(headers, RESUMES)
}

/// Whose session a request with these headers begins. Cookies do not count: proxies set and change them meanwhile.
pub(super) fn owner(headers: &HeaderMap) -> [u8; 32] {
    digest(headers, &[TOKEN, AUTHORIZATION])
}

/// Who sends these headers, if they say so.
pub(super) fn caller(headers: &HeaderMap) -> Option<[u8; 32]> {
    let names = [AUTHORIZATION, COOKIE];
    names.iter().any(|name| headers.contains_key(name)).then(|| digest(headers, &names))
}

fn digest(headers: &HeaderMap, names: &[HeaderName]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for name in names {
        let value = headers.get(name).map(HeaderValue::as_bytes);
        hasher.update(&[u8::from(value.is_some())]);
        let value = value.unwrap_or_default();
        hasher.update(&(value.len() as u64).to_le_bytes());
        hasher.update(value);
    }
    *hasher.finalize().as_bytes()
}

/// What is heard of a post: with the head of a stream before it, if that begins at once.
pub(super) fn hearing(post: Post, is_primed: bool) -> EventStream {
    let first = is_primed.then(|| ServerEvent::Head(StatusCode::OK, event_headers()));
    EventStream::of_sent(iter(first).chain(post))
}
