//! Clients over HTTP, and a server at an address.
use super::upstream::{Events, Upstream};
use crate::{
    engine::{
        guard::Guard,
        presence::Presence,
        proxy::too_long,
        server_event::{Asks, Backend, EventStream, Posted, refused},
    },
    front::{
        body::{Answered, EndsAtOnce},
        events::{body_of, event, is_event_stream},
    },
    wire::{
        http_names::LAST_EVENT,
        jsonrpc::{self, NOT_FORWARDED},
        lines::Oversized,
        sse::Content,
    },
};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http_body_util::BodyExt as _;
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue},
    http::request::Parts,
};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tr_core::BoxError;

/// How long `initialize` waits for a server that is about to start, or whose gateway has no way to it yet.
const STARTS: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(250);

/// A server at an address. Requests that are no guarded calls pass.
#[derive(Clone)]
pub(crate) struct HttpToHttp {
    pub(crate) upstream: Arc<Upstream>,
    /// The address of messages; `None` for that of the options.
    pub(crate) uri: Option<Uri>,
    pub(crate) guard: Arc<Guard>,
}

impl HttpToHttp {
    fn passed(&self, response: Response<Incoming>) -> Answered {
        let (mut head, body) = response.into_parts();
        let body = if is_event_stream(&head.headers) {
            head.headers.remove(CONTENT_LENGTH);
            body_of(watched(body, self.guard.clone()))
        } else {
            body.map_err(BoxError::from).boxed_unsync()
        };
        Response::from_parts(head, body)
    }
}

impl Backend for HttpToHttp {
    fn at(&self, uri: &Uri) -> Self {
        Self { uri: Some(self.upstream.on_server(uri)), ..self.clone() }
    }

    fn path(&self) -> &str {
        self.upstream.path()
    }

    fn has_answered(&self, head: &Parts) -> bool {
        self.upstream.has_answered(head)
    }

    fn post(&self, posted: Posted, _: Option<&Presence>) -> EventStream {
        let is_sent = Arc::<AtomicBool>::default();
        let heard = self.upstream.events(self.uri.clone(), posted, is_sent.clone());
        EventStream::of(heard, is_sent)
    }

    async fn other(&self, request: Request<Bytes>) -> Answered {
        let begins = Asks::of(request.body()).is_initialize;
        // One that is resumed may carry the answer of a call.
        let is_own = request.method() == Method::GET && !request.headers().contains_key(LAST_EVENT);
        let until = begins.then(|| Instant::now() + STARTS);
        loop {
            let passed = self.upstream.pass(&request, begins).await;
            let may_start = match &passed {
                Ok(response) => has_no_way(response),
                Err(failure) => failure.ran() == tr_core::Ran::No && failure.is_transient(),
            };
            if may_start && until.is_some_and(|until| Instant::now() + AGAIN < until) {
                sleep(AGAIN).await;
                continue;
            }
            return match passed {
                Ok(response) => {
                    let mut answer = self.passed(response);
                    if is_own && is_event_stream(answer.headers()) {
                        answer.extensions_mut().insert(EndsAtOnce);
                    }
                    answer
                }
                Err(failure) => {
                    let id = jsonrpc::id_text(request.body());
                    refused(StatusCode::BAD_GATEWAY, &id, NOT_FORWARDED, &failure.to_string())
                }
            };
        }
    }
}

/// The event in the place of an answer that is too long.
fn oversized(long: &Oversized) -> Option<Bytes> {
    let id = long.id.as_deref().filter(|_| !long.asks)?;
    Some(event(&too_long(long, Some(id)), None))
}

/// Whether a gateway in front of the server answers that it knows no way to it. MCP's own 404 is JSON.
fn has_no_way(response: &Response<Incoming>) -> bool {
    let media = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    response.status() == StatusCode::NOT_FOUND
        && !media.is_some_and(|media| media.starts_with(b"application/json"))
}

/// The events of a stream: what they say of the tools is read, and words in the guard's name are removed.
fn watched(
    body: Incoming,
    guard: Arc<Guard>,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    let events = Events::new(body, guard.max_line);
    stream::try_unfold((Some(events), guard), |(events, guard)| async move {
        let Some(mut events) = events else { return Ok(None) };
        let Some(piece) = events.next().await? else {
            return Ok(Some((events.rest(), (None, guard))));
        };
        let bytes = match &piece.content {
            Content::Message(line) => {
                let clean = guard.overheard(line);
                (clean != *line).then(|| event(&clean, Some(&piece.raw)))
            }
            Content::Oversized(long) => oversized(long),
            Content::None => None,
        };
        Ok(Some((bytes.unwrap_or(piece.raw), (Some(events), guard))))
    })
}
