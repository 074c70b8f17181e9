//! What the guard does with each line, in the order in which they come.
use super::{
    Mode, answer,
    call::{Answer, Ending, McpCall, Refused, Request},
    effects::Effects,
    flights::{Answered, InUse, Relay, token},
    lines::Item,
    message::{self, Line, Message, NoteParams, Token},
    stack::Settle,
    tool::Wire,
};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::{
    collections::HashSet,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
};
use tokio::time::Instant;
use tool_reliability::telemetry::TARGET;
use tower::ServiceExt;
use tower_service::Service;
use tr_core::{BoxError, CallParts, ToolCall, ToolOutcome, call::Attachment};

/// What the server answers to a request after it has ended, as MCP's own clients report it.
const CONNECTION_CLOSED: i64 = -32000;
/// More requests than any client leaves open; of further ones only the end of the server is not
/// told.
const MAX_REQUESTS: usize = 65_536;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const PARSE_ERROR: i64 = -32700;

/// A call's end, and whose call it was.
pub(crate) type Finished = (Arc<McpCall>, Result<ToolOutcome, BoxError>);

/// The calls that are under way.
pub(crate) struct Calls {
    wire: Arc<Wire>,
    running: FuturesUnordered<Pin<Box<dyn Future<Output = Finished>>>>,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Waits until a call has ended, or an attempt has something to send.
    pub(crate) async fn step(&mut self) -> Option<Finished> {
        poll_fn(|cx| match self.running.poll_next_unpin(cx) {
            Poll::Ready(Some(finished)) => Poll::Ready(Some(finished)),
            _ if !self.wire.lock().outbox.is_empty() => Poll::Ready(None),
            _ => Poll::Pending,
        })
        .await
    }
}

/// The guard between two streams of lines. It does no I/O: lines for either side gather in
/// [`to_client`](Self::to_client) and [`to_server`](Self::to_server).
pub(crate) struct Proxy<S> {
    mode: Mode,
    wire: Arc<Wire>,
    stack: S,
    settle: Settle,
    session: Box<str>,
    effects: Effects,
    /// The calls that are under way.
    pub(crate) calls: Calls,
    /// Requests of the client that are no tool calls, by id.
    requests: HashSet<Token>,
    /// Those of them that ask for the list of tools.
    lists: HashSet<Token>,
    /// Lines for the client that are not written yet.
    pub(crate) to_client: BytesMut,
    /// Lines for the server that are not written yet.
    pub(crate) to_server: BytesMut,
}

/// What a proxy is made of.
pub(crate) struct Parts<S> {
    pub(crate) mode: Mode,
    pub(crate) wire: Arc<Wire>,
    pub(crate) stack: S,
    /// Told of an answer that came after its call was given up.
    pub(crate) settle: Settle,
    pub(crate) session: Box<str>,
    pub(crate) effects: Effects,
}

impl<S> Proxy<S>
where
    S: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone + 'static,
{
    pub(crate) fn new(parts: Parts<S>) -> Self {
        let Parts { mode, wire, stack, settle, session, effects } = parts;
        Self {
            calls: Calls { wire: wire.clone(), running: FuturesUnordered::new() },
            mode,
            wire,
            stack,
            settle,
            session,
            effects,
            requests: HashSet::new(),
            lists: HashSet::new(),
            to_client: BytesMut::new(),
            to_server: BytesMut::new(),
        }
    }

    /// Calls went on. Take this step before the next line: it is what keeps lines in order.
    pub(crate) fn on_step(&mut self, finished: Option<Finished>) {
        self.collect();
        let Some((call, end)) = finished else { return };
        let wanted = self.wire.lock().flights.close(call.id());
        if wanted && self.mode == Mode::Enforce {
            self.to_client.extend_from_slice(&answer::line(&call, &end));
        }
    }

    /// Takes the lines that attempts have sent.
    fn collect(&mut self) {
        let mut wire = self.wire.lock();
        for line in wire.outbox.drain(..) {
            self.to_server.extend_from_slice(&line);
        }
    }

    /// Something came from the client.
    pub(crate) fn on_client(&mut self, item: &Item) {
        self.collect();
        match item {
            Item::Line(line) if self.mode == Mode::Off => self.to_server.extend_from_slice(line),
            Item::Line(line) => self.on_client_line(line),
            Item::Oversized { bytes, id } => {
                tracing::warn!(target: TARGET, event = "line_dropped", from = "client", bytes);
                let text = format!(
                    "the line has {bytes} bytes, more than the guard passes on: raise --max-line"
                );
                let line = answer::refusal(id.as_deref().unwrap_or("null"), INVALID_REQUEST, &text);
                self.to_client.extend_from_slice(&line);
            }
        }
    }

    fn on_client_line(&mut self, line: &Bytes) {
        let enforce = self.mode == Mode::Enforce;
        match message::read(line) {
            Line::One(message) if message.is_tool_call() => self.on_call(line, &message),
            Line::One(message) => self.on_client_message(line, &message),
            Line::Batch { calls_tool: true } if enforce => self.refuse(
                "null",
                INVALID_REQUEST,
                "tools/call in a batch cannot be guarded: send it as a message of its own",
            ),
            Line::Unreadable { may_call_tool: true } if enforce => self.refuse(
                "null",
                PARSE_ERROR,
                "the line is not unambiguous JSON (bad syntax, bad UTF-8 or a name twice), and could be a tool call",
            ),
            Line::Batch { .. } | Line::Unreadable { .. } => self.to_server.extend_from_slice(line),
        }
    }

    fn refuse(&mut self, id: &str, code: i64, text: &str) {
        self.to_client.extend_from_slice(&answer::refusal(id, code, text));
    }

    fn on_client_message(&mut self, line: &Bytes, message: &Message<'_>) {
        match (message.method.as_deref(), token(message.id)) {
            (Some("notifications/cancelled"), None) => return self.on_cancel(line, message),
            (Some(method), Some(id)) => {
                if self.wire.lock().gone && self.mode == Mode::Enforce {
                    let id = message.id.map_or("null", |id| id.get());
                    return self.refuse(
                        id,
                        CONNECTION_CLOSED,
                        "Connection closed: the MCP server has ended",
                    );
                }
                if method == "tools/list" {
                    self.lists.insert(id.clone());
                }
                if self.requests.len() < MAX_REQUESTS {
                    self.requests.insert(id);
                }
            }
            _ => {}
        }
        self.to_server.extend_from_slice(line);
    }

    fn on_cancel(&mut self, line: &Bytes, message: &Message<'_>) {
        let params =
            message.params.and_then(|raw| message::object::<NoteParams<'_>>(raw.get()).ok());
        let raw_id = params.and_then(|params| params.request_id);
        let relay = match token(raw_id) {
            Some(id) => self.wire.lock().flights.cancel(&id),
            None => Relay::Raw,
        };
        Self::relay(self.mode, &mut self.to_server, line, raw_id, &relay);
    }

    fn relay(
        mode: Mode,
        out: &mut BytesMut,
        line: &Bytes,
        part: Option<&serde_json::value::RawValue>,
        relay: &Relay,
    ) {
        match (relay, part) {
            (Relay::With(text), Some(raw)) if mode == Mode::Enforce => {
                out.extend_from_slice(&message::splice(line, &[(message::range(line, raw), text)]));
            }
            (Relay::Swallow, _) if mode == Mode::Enforce => {}
            _ => out.extend_from_slice(line),
        }
    }

    fn on_call(&mut self, line: &Bytes, message: &Message<'_>) {
        let shadow = self.mode == Mode::Shadow;
        if shadow {
            self.to_server.extend_from_slice(line);
        }
        let id_text = message.id.map_or("null", |id| id.get());
        let request = match Request::read(line, message) {
            Ok(request) => request,
            Err(_) if shadow => return,
            Err(Refused::Notification) => {
                return tracing::warn!(target: TARGET, event = "call_without_id_dropped");
            }
            Err(Refused::Params(why)) => return self.refuse(id_text, INVALID_PARAMS, &why),
        };
        let opened = self.wire.lock().flights.open(&request.call);
        match opened {
            Ok(()) => self.start(request),
            Err(InUse) if shadow => {}
            Err(InUse) => {
                self.refuse(id_text, INVALID_REQUEST, "a call with this id is still under way");
            }
        }
    }

    fn start(&mut self, request: Request) {
        let Request { call, tool, arguments, key, traceparent } = request;
        let mcp = Arc::new(call);
        let mut parts = CallParts::new(&*tool, arguments);
        parts.request_id = Some(mcp.id().to_string().into());
        parts.context.session = Some(self.session.clone());
        parts.idempotency.key = key;
        parts.trace.traceparent = traceparent;
        parts.attachment = Attachment::new(mcp.clone());
        let mut call = ToolCall::from(parts);
        if let Some(manifest) = self.effects.of(&tool) {
            call = call.manifested(manifest.clone());
        }
        let stack = self.stack.clone();
        self.calls.running.push(Box::pin(async move { (mcp, stack.oneshot(call).await) }));
    }

    /// Something came from the server.
    pub(crate) fn on_server(&mut self, item: &Item) {
        match item {
            Item::Line(line) if self.mode == Mode::Off => self.to_client.extend_from_slice(line),
            Item::Line(line) => self.on_server_line(line),
            Item::Oversized { bytes, id } => {
                tracing::warn!(target: TARGET, event = "line_dropped", from = "server", bytes);
                self.on_oversized(*bytes, id.as_deref());
            }
        }
    }

    fn on_server_line(&mut self, line: &Bytes) {
        let Line::One(message) = message::read(line) else {
            return self.to_client.extend_from_slice(line);
        };
        match message.method.as_deref() {
            None if message.id.is_some() => self.on_answer(line, &message),
            Some("notifications/progress") => self.on_progress(line, &message),
            Some("notifications/tools/list_changed") => {
                self.effects.forget();
                self.to_client.extend_from_slice(line);
            }
            _ => self.to_client.extend_from_slice(line),
        }
    }

    fn on_progress(&mut self, line: &Bytes, message: &Message<'_>) {
        let params =
            message.params.and_then(|raw| message::object::<NoteParams<'_>>(raw.get()).ok());
        let progress = params.as_ref().and_then(|params| params.progress);
        let raw = params.and_then(|params| params.progress_token);
        let now = Instant::now().into_std();
        let relay = match token(raw) {
            Some(token) => self.wire.lock().flights.progressed(&token, progress, now),
            None => Relay::Raw,
        };
        Self::relay(self.mode, &mut self.to_client, line, raw, &relay);
    }

    fn on_answer(&mut self, line: &Bytes, message: &Message<'_>) {
        let enforce = self.mode == Mode::Enforce;
        if !enforce {
            self.to_client.extend_from_slice(line);
        }
        let (Some(raw), Some(id)) = (message.id, token(message.id)) else {
            if enforce {
                self.to_client.extend_from_slice(line);
            }
            return;
        };
        let answered = self.wire.lock().flights.answered(&id);
        match answered {
            Answered::Attempt { ending, recorded } => {
                let outcome = answer::outcome(message, recorded);
                let answer = Answer { line: line.clone(), id_range: message::range(line, raw) };
                // A receiver that is gone has given up between two polls; its drop said so.
                let _ = ending.send(Ending::Answered(answer, outcome));
            }
            Answered::Late { record, pass } => {
                if let Some(record) = record {
                    (self.settle)(record, &answer::outcome(message, true));
                }
                if pass && enforce {
                    self.to_client.extend_from_slice(line);
                }
            }
            Answered::Stranger => {
                self.requests.remove(&id);
                if self.lists.remove(&id)
                    && let Some(result) = message.result
                {
                    self.effects.learn(result);
                }
                if enforce {
                    self.to_client.extend_from_slice(line);
                }
            }
        }
    }

    /// The answer itself is lost; whoever waits for it is told so.
    fn on_oversized(&mut self, bytes: usize, id: Option<&str>) {
        let Some(text) = id else { return };
        let parsed: Option<&serde_json::value::RawValue> = serde_json::from_str(text).ok();
        let Some(id) = token(parsed) else { return };
        let why = format!(
            "the answer has {bytes} bytes, more than the guard passes on: raise --max-line"
        );
        let answered = self.wire.lock().flights.answered(&id);
        match answered {
            Answered::Attempt { ending, .. } => {
                let _ = ending.send(Ending::Oversized(bytes));
            }
            Answered::Late { .. } => {}
            Answered::Stranger => {
                if self.requests.remove(&id) {
                    self.lists.remove(&id);
                    self.refuse(text, INVALID_REQUEST, &why);
                }
            }
        }
    }

    /// The server has ended: whatever waits for it is answered.
    pub(crate) fn on_server_gone(&mut self) {
        let mut wire = self.wire.lock();
        wire.gone = true;
        wire.flights.server_gone();
        drop(wire);
        self.to_server.clear();
        self.lists.clear();
        if self.mode != Mode::Enforce {
            return self.requests.clear();
        }
        for id in std::mem::take(&mut self.requests) {
            let line = answer::refusal(
                &id.to_json(),
                CONNECTION_CLOSED,
                "Connection closed: the MCP server has ended",
            );
            self.to_client.extend_from_slice(&line);
        }
    }
}
