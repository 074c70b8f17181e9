//! The guard as the client of a server at an address: its session, its posts, and the server's own stream.
use super::headers::{Modern, encoded, modern};
use crate::mcp::{
    failure::Failure,
    identity::SESSION,
    lines::Item,
    message::{self, Line, NoteParams, Token},
    out::{Outgoing, Sent},
    upstream::{
        Heard, Hearing, Posted, Upstream,
        sse::{Content, Splitter},
    },
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::Value;
use std::{future::poll_fn, pin::Pin, task::Poll, time::Duration};
use tokio::time::sleep;
use tr_core::{FailureInfo, Ran, Verdict};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long before the server's own stream is opened again, unless the server says how long.
const AGAIN: Duration = Duration::from_secs(1);

/// A message that was posted, or the server's own stream.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// The id under which it is answered.
    pub(super) id: Option<Token>,
    is_mutating: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The client's `initialize`.
    Begins,
    /// The same, sent once more since the session was lost.
    BeginsAgain,
    Message,
    /// The server's own stream.
    Stream,
}

type Heards = Pin<Box<dyn Stream<Item = Heard> + Send>>;

/// The talk with the server.
pub(super) struct Talk {
    upstream: Upstream,
    /// The operator's headers.
    own: HeaderMap,
    max_line: usize,
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// The client's `initialize`, and its id.
    initialize: Option<(Bytes, Token)>,
    /// Messages that wait for the end of an `initialize` that is repeated.
    held: Option<Vec<Outgoing>>,
    open: Vec<(Open, Heards)>,
}

impl Talk {
    pub(super) fn new(upstream: Upstream, own: HeaderMap, max_line: usize) -> Self {
        Self {
            upstream,
            own,
            max_line,
            session: None,
            version: None,
            initialize: None,
            held: None,
            open: Vec::new(),
        }
    }

    /// Reads a line of the client's: its `initialize` is repeated if the session is lost.
    pub(super) fn on_client(&mut self, item: &Item) {
        let Item::Line(line) = item else { return };
        if let Line::One(message) = message::read(line)
            && message.method.as_deref() == Some("initialize")
            && let Some(id) = message.id.and_then(Token::read)
        {
            self.initialize = Some((line.clone(), id));
        }
    }

    /// Sends a message.
    pub(super) fn send(&mut self, outgoing: Outgoing) {
        if let Some(held) = &mut self.held {
            return held.push(outgoing);
        }
        let Outgoing { line, attempt } = outgoing;
        let Line::One(message) = message::read(&line) else {
            return self.post(line.clone(), attempt, None, Kind::Message);
        };
        let method = message.method.as_deref();
        if method == Some("notifications/cancelled") {
            let params: Option<NoteParams<'_>> =
                message.params.and_then(|raw| message::object(raw.get()).ok());
            let id = params.and_then(|params| Token::read(params.request_id?));
            self.open.retain(|(open, _)| open.is_mutating || open.id.is_none() || open.id != id);
            if self.is_modern() {
                // There it is the end of the stream that cancels.
                return;
            }
        }
        let begins = method == Some("initialize");
        let id = message.id.and_then(Token::read).filter(|_| method.is_some());
        let opens_stream = method == Some("notifications/initialized");
        let kind = if begins { Kind::Begins } else { Kind::Message };
        if begins {
            (self.session, self.version) = (None, None);
        }
        self.post(line.clone(), attempt, id, kind);
        if opens_stream {
            self.listen();
        }
    }

    fn post(&mut self, body: Bytes, attempt: Option<Sent>, id: Option<Token>, kind: Kind) {
        let headers = self.headers(&body);
        let is_mutating = attempt.as_ref().is_some_and(|attempt| attempt.is_mutating);
        let hearing: Hearing = self.upstream.post(Posted { headers, body, attempt });
        self.open.push((Open { id, is_mutating, kind }, Box::pin(hearing)));
    }

    /// Whether the client speaks a version without `initialize`.
    const fn is_modern(&self) -> bool {
        self.initialize.is_none()
    }

    fn base(&self) -> HeaderMap {
        let mut headers = self.own.clone();
        if let Some(session) = &self.session {
            headers.insert(SESSION, session.clone());
        }
        if let Some(version) = &self.version {
            headers.insert(VERSION, version.clone());
        }
        headers
    }

    fn headers(&self, body: &[u8]) -> HeaderMap {
        let mut headers = self.base();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        if let Some(Modern { version, method, name }) = modern(body) {
            let parts = [(VERSION, Some(version)), (METHOD, Some(method)), (NAME, name)];
            for (header, text) in parts {
                if let Some(value) = text.and_then(|text| encoded(&text)) {
                    headers.insert(header, value);
                }
            }
        }
        headers
    }

    /// Opens the stream of the server's own messages.
    fn listen(&mut self) {
        self.open.retain(|(open, _)| open.kind != Kind::Stream);
        let mut headers = self.base();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let heards = own_stream(self.upstream.clone(), headers, self.max_line);
        let open = Open { id: None, is_mutating: false, kind: Kind::Stream };
        self.open.push((open, Box::pin(heards)));
    }

    /// What is heard next, and of what.
    pub(super) async fn next(&mut self) -> (Open, Option<Heard>) {
        let (at, heard) = poll_fn(|cx| {
            for (at, (_, heards)) in self.open.iter_mut().enumerate() {
                if let Poll::Ready(heard) = heards.poll_next_unpin(cx) {
                    return Poll::Ready((at, heard));
                }
            }
            Poll::Pending
        })
        .await;
        let open = self.open[at].0.clone();
        if heard.is_none() || matches!(heard, Some(Heard::Refused(_) | Heard::Failed(_))) {
            drop(self.open.remove(at));
        }
        if matches!(open.kind, Kind::Begins | Kind::BeginsAgain) {
            self.on_begun(&open, heard.as_ref());
        }
        // The client has had its answer.
        if open.kind == Kind::BeginsAgain {
            return (Open { id: None, ..open }, Some(Heard::Between(Bytes::new())));
        }
        (open, heard)
    }

    fn on_begun(&mut self, open: &Open, heard: Option<&Heard>) {
        match heard {
            Some(Heard::Head(_, headers)) => self.session = headers.get(SESSION).cloned(),
            Some(Heard::Message { line, .. }) => {
                let answer: Value = serde_json::from_slice(line).unwrap_or_default();
                let version = answer["result"]["protocolVersion"].as_str();
                if let Some(version) = version.and_then(|it| HeaderValue::from_str(it).ok()) {
                    self.version = Some(version);
                }
                if open.kind == Kind::BeginsAgain && !answer["id"].is_null() {
                    let note = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                    let held = self.held.take().unwrap_or_default();
                    self.post(Bytes::from_static(note), None, None, Kind::Message);
                    self.listen();
                    for message in held {
                        self.send(message);
                    }
                }
            }
            Some(Heard::Refused(_) | Heard::Failed(_)) | None => {
                // The messages that waited fail by themselves.
                for message in self.held.take().unwrap_or_default() {
                    self.send(message);
                }
            }
            _ => {}
        }
    }

    /// What a refusal says to the client. If the session is lost, it is begun again.
    pub(super) fn refused(&mut self, open: &Open, response: &Response<Bytes>) -> Failure {
        let status = response.status();
        let lost = matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
            && self.session.is_some()
            && matches!(open.kind, Kind::Message);
        let mut verdict = Verdict::Permanent;
        if lost
            && self.held.is_none()
            && let Some((line, id)) = self.initialize.clone()
        {
            (self.session, self.version) = (None, None);
            self.post(line, None, Some(id), Kind::BeginsAgain);
            self.held = Some(Vec::new());
        }
        if lost {
            verdict = Verdict::TRANSIENT;
        }
        let said = error_of(response.body()).unwrap_or_default();
        let text = match &*said {
            "" => format!("The MCP server refused the request: {status}"),
            said => format!("The MCP server refused the request: {status}: {said}"),
        };
        Failure::said(text, FailureInfo::new("refused", Ran::No, verdict))
    }

    /// Ends the session.
    pub(super) async fn end(&mut self) {
        self.open.clear();
        if self.session.is_none() {
            return;
        }
        let headers = self.base();
        // What the server says to that changes nothing.
        let _ = self.upstream.pass(request(&self.upstream, Method::DELETE, headers)).await;
    }
}

pub(super) fn unanswered() -> Failure {
    let facts = FailureInfo::new("server_gone", Ran::Unknown, Verdict::TRANSIENT);
    Failure::said("The MCP server's response ended without an answer", facts)
}

fn request(
    upstream: &Upstream,
    method: Method,
    headers: HeaderMap,
) -> Request<crate::mcp::upstream::BoxBody> {
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = upstream.path().parse().unwrap_or_default();
    *request.headers_mut() = headers;
    request
}

/// The server's own messages: a server without them refuses the request.
fn own_stream(
    upstream: Upstream,
    headers: HeaderMap,
    max_line: usize,
) -> impl Stream<Item = Heard> + Send {
    struct Own {
        upstream: Upstream,
        headers: HeaderMap,
        max_line: usize,
        now: Option<(hyper::body::Incoming, Splitter)>,
        wait: Option<Duration>,
    }
    let state = Own { upstream, headers, max_line, now: None, wait: None };
    stream::unfold(state, |mut own| async move {
        loop {
            let Some((body, splitter)) = &mut own.now else {
                if let Some(wait) = own.wait {
                    sleep(wait).await;
                }
                let get = request(&own.upstream, Method::GET, own.headers.clone());
                match own.upstream.pass(get).await {
                    Ok(response) if response.status().is_success() => {
                        own.now = Some((response.into_body(), Splitter::new(own.max_line)));
                        own.wait.get_or_insert(AGAIN);
                    }
                    // It has none, or the session is gone.
                    Ok(_) => return None,
                    Err(_) => {
                        own.wait = Some(own.wait.map_or(AGAIN, |it| (it * 2).min(AGAIN * 30)));
                    }
                }
                continue;
            };
            if let Some(piece) = splitter.next() {
                if let Some(id) = piece.id.as_deref().and_then(|id| HeaderValue::from_str(id).ok())
                {
                    own.headers.insert(LAST_EVENT, id);
                }
                own.wait = piece.retry.or(own.wait);
                match piece.content {
                    Content::Message(line) => {
                        return Some((Heard::Message { line, raw: piece.raw }, own));
                    }
                    Content::Oversized(long) => return Some((Heard::Oversized(long), own)),
                    Content::None => continue,
                }
            }
            match body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        splitter.feed(&data);
                    }
                }
                Some(Err(_)) | None => own.now = None,
            }
        }
    })
}

/// The message of a JSON-RPC error.
fn error_of(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body["error"]["message"].as_str()?.to_owned())
}
