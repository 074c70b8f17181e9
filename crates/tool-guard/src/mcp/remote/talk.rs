//! The guard as the client of a server at an address: its session, its posts, and the server's own stream.
use super::{
    headers::{Modern, encoded, modern, repeated},
    own_stream::{own_stream, request},
    refusal::error_of,
    relist::{self, Listed},
};
use crate::mcp::{
    Effects,
    failure::Failure,
    identity::SESSION,
    lines::Item,
    message::{self, Line, NoteParams, Token},
    out::{Outgoing, Sent},
    upstream::{Heard, Hearing, Posted, Upstream, error, is_protocol_refusal},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::Value;
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};
use tr_core::{FailureInfo, Ran, Verdict};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A message that was posted, or the server's own stream.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// The id under which it is answered.
    pub(super) id: Option<Token>,
    /// The call that it begins.
    call: Option<Call>,
    kind: Kind,
}

/// A call that was posted.
#[derive(Clone, Debug)]
struct Call {
    body: Bytes,
    sent: Sent,
    /// The headers that repeat its arguments.
    params: Vec<(HeaderName, HeaderValue)>,
    /// Whether it was posted before, with other headers.
    is_again: bool,
}

/// A call that was refused since its headers do not repeat what they should.
#[derive(Debug)]
struct Mismatch {
    open: Open,
    response: Box<Response<Bytes>>,
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
    /// The list of tools, which the guard asks for.
    List,
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
    /// What is known of the server's tools.
    effects: Arc<Mutex<Effects>>,
    /// Calls that wait for the list of tools.
    mismatches: Vec<Mismatch>,
    open: Vec<(Open, Heards)>,
}

impl Talk {
    pub(super) fn new(
        upstream: Upstream,
        own: HeaderMap,
        max_line: usize,
        effects: Arc<Mutex<Effects>>,
    ) -> Self {
        Self {
            upstream,
            own,
            max_line,
            session: None,
            version: None,
            initialize: None,
            held: None,
            effects,
            mismatches: Vec::new(),
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
            let stays = |open: &Open| open.is_mutating() || open.id.is_none() || open.id != id;
            self.open.retain(|(open, _)| stays(open));
            self.mismatches.retain(|it| stays(&it.open));
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
        let sent = attempt.clone();
        let call = sent.map(|sent| Call {
            body: body.clone(),
            sent,
            params: relist::params(&headers),
            is_again: false,
        });
        let hearing: Hearing = self.upstream.post(Posted { headers, body, attempt });
        self.open.push((Open { id, call, kind }, Box::pin(hearing)));
    }

    /// Whether the client speaks a version without `initialize`.
    const fn is_modern(&self) -> bool {
        self.initialize.is_none()
    }

    fn effects(&self) -> MutexGuard<'_, Effects> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let Some(Modern { version, method, name, arguments }) = modern(body) {
            if let Some(tool) = name.as_deref().filter(|_| method == "tools/call") {
                headers.extend(repeated(self.effects().mirrored(), tool, &arguments));
            }
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
        let open = Open { id: None, call: None, kind: Kind::Stream };
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
        match heard {
            heard if open.kind == Kind::List => self.on_list(at, heard),
            // The client has had its answer.
            _ if open.kind == Kind::BeginsAgain => {}
            Some(Heard::Refused(response)) if open.may_relist(&response) => {
                if self.mismatches.is_empty() {
                    self.list(open.call.as_ref(), None);
                }
                self.mismatches.push(Mismatch { open: open.clone(), response });
            }
            heard => return (open, heard),
        }
        (Open { id: None, ..open }, Some(Heard::Between(Bytes::new())))
    }

    /// Asks for the list of tools, in the name of this call's client.
    fn list(&mut self, call: Option<&Call>, cursor: Option<&str>) {
        let Some(call) = call else { return };
        let (line, id) = relist::request(&call.body, cursor);
        self.post(line, None, Some(id), Kind::List);
    }

    /// Handles what is heard of the list.
    fn on_list(&mut self, at: usize, heard: Option<Heard>) {
        match heard {
            Some(Heard::Head(..) | Heard::Between(_)) => return,
            Some(Heard::Message { line, .. }) => match relist::read(&line) {
                Listed::Other => return,
                Listed::Page(result, cursor) => {
                    drop(self.open.remove(at));
                    self.effects().learn(&result);
                    if let Some(cursor) = cursor {
                        let call = self.mismatches.first().and_then(|it| it.open.call.clone());
                        return self.list(call.as_ref(), Some(&cursor));
                    }
                }
                Listed::None => drop(self.open.remove(at)),
            },
            Some(Heard::Oversized(_)) => drop(self.open.remove(at)),
            Some(Heard::Refused(_) | Heard::Failed(_)) | None => {}
        }
        for Mismatch { mut open, response } in std::mem::take(&mut self.mismatches) {
            let Some(call) = &mut open.call else { continue };
            call.is_again = true;
            let (body, sent) = (call.body.clone(), call.sent.clone());
            let headers = self.headers(&body);
            // With the same headers, it would be refused again.
            let heards: Heards = if call.params == relist::params(&headers) {
                Box::pin(stream::iter([Heard::Refused(response)]))
            } else {
                Box::pin(self.upstream.post(Posted { headers, body, attempt: Some(sent) }))
            };
            self.open.push((open, heards));
        }
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

    /// Whether this status says that the session is lost.
    fn is_lost(&self, open: &Open, status: StatusCode) -> bool {
        matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
            && self.session.is_some()
            && matches!(open.kind, Kind::Message)
    }

    /// The JSON-RPC error of a refusal, if it is the client's answer as it is.
    pub(super) fn answer(&self, open: &Open, response: &Response<Bytes>) -> Option<Bytes> {
        let (status, body) = (response.status(), response.body());
        error(body)?;
        let passes = open.call.is_none() || self.is_modern() && is_protocol_refusal(status, body);
        let Line::One(answer) = message::read(body) else { return None };
        let is_its_own = answer.id.and_then(Token::read) == open.id;
        (passes && is_its_own && !self.is_lost(open, status)).then(|| body.clone())
    }

    /// What a refusal says to the client. If the session is lost, it is begun again.
    pub(super) fn refused(&mut self, open: &Open, response: &Response<Bytes>) -> Failure {
        let status = response.status();
        let lost = self.is_lost(open, status);
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

impl Open {
    /// Whether it begins a call.
    pub(super) const fn is_call(&self) -> bool {
        self.call.is_some()
    }

    fn is_mutating(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.sent.is_mutating)
    }

    /// Whether the list of tools may say which headers this refused call lacks.
    fn may_relist(&self, response: &Response<Bytes>) -> bool {
        let code = error(response.body()).and_then(|error| error.code());
        response.status() == StatusCode::BAD_REQUEST
            && code == Some(relist::MISMATCH)
            && self.call.as_ref().is_some_and(|call| !call.is_again)
    }
}
