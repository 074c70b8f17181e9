//! The guard as the client of a server at an address: its session, its posts, and the server's own stream.
use super::{
    headers::{Headers, Own},
    open::{Held, Kind, Message, Open},
    own_stream::own_stream,
};
use crate::{
    engine::{
        failure::Failure,
        guard::Guard,
        options::{Mode, Options},
        out::Outgoing,
        server_event::{Asks, EventStream, ServerEvent, next_of},
    },
    servers::upstream::{Upstream, is_protocol_refusal},
    wire::{
        http_names::SESSION,
        jsonrpc::{self, Line, Token, error_code, string},
        params::cancelled,
        scan::answered,
    },
};
use bytes::Bytes;
use futures_util::future::OptionFuture;
use hyper::{Method, Response, header::HeaderValue};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};
use tr_core::{FailureInfo, Ran, Verdict};

/// How long messages wait for a sign that `notifications/initialized` has reached the server.
const REACHED: Duration = Duration::from_secs(2);

/// A server at an address, for one client.
pub(crate) struct StdioToHttp {
    pub(super) mode: Mode,
    upstream: Arc<Upstream>,
    headers: Headers,
    /// The client's `initialize`, and its id.
    initialize: Option<(Bytes, Token)>,
    /// The server has lost the session, and did not begin another.
    is_lost: bool,
    /// Messages that wait for the begin of the session.
    held: Option<Held>,
    /// How long a request may take.
    patience: Duration,
    open: Vec<(Open, EventStream)>,
    /// Errors by which the server refused calls that did not run, for the client.
    pub(super) refusals: Vec<(Token, Bytes)>,
}

impl StdioToHttp {
    /// The server of the options.
    ///
    /// # Errors
    /// If its address, or the file of headers for it, cannot be used.
    pub(crate) fn new(options: &Options, guard: &Guard) -> anyhow::Result<Self> {
        let own = Own::of(options.http.header_file.as_deref())?;
        let effects = guard.effects.clone();
        Ok(Self {
            mode: options.mode,
            upstream: Upstream::new(&options.http, guard.statuses.clone(), options.max_line)?,
            headers: Headers { own, session: None, version: None, effects },
            initialize: None,
            is_lost: false,
            held: None,
            patience: guard.limits.idle,
            open: Vec::new(),
            refusals: Vec::new(),
        })
    }

    /// Sends a message.
    pub(super) fn send(&mut self, outgoing: Outgoing) {
        if self.is_lost && self.held.is_none() && !Asks::of(&outgoing.line).is_initialize {
            self.begin_again();
        }
        if let Some(held) = &mut self.held {
            let cancelled = cancelled(&outgoing.line);
            let is_it = |it: &Outgoing| {
                cancelled.is_some() && it.attempt.as_ref().map(|it| &it.id) == cancelled.as_ref()
            };
            match held.messages.iter().position(is_it) {
                // It was not sent, and is not any more.
                Some(at) => {
                    let unsent = held.messages.remove(at);
                    self.fail_unsent(unsent, Failure::CANCELLED_BEFORE);
                }
                None => held.messages.push(outgoing),
            }
            return;
        }
        let Outgoing { line, attempt } = outgoing;
        let mut open = Open::of(&line, attempt);
        let read = jsonrpc::read(&line);
        let method = match &read {
            Line::One(message) => message.method.as_deref(),
            _ => None,
        };
        if method == Some("notifications/cancelled") {
            let id = cancelled(&line);
            let is_unsent = |(open, heards): &(Open, EventStream)| {
                open.call.is_some() && open.id == id && !heards.is_sent()
            };
            if let Some(at) = self.open.iter().position(is_unsent) {
                // Of a call that waits for its preflight the server need not hear.
                let (open, _) = self.open.remove(at);
                let failed = ServerEvent::Failed(Failure::CANCELLED_BEFORE);
                return self.open.push((open, EventStream::only(failed)));
            }
            let is_modern = self.is_modern();
            self.open.retain(|(open, _)| {
                let call = open.call.as_ref();
                let outlives_stream = call.is_some_and(|sent| sent.outlives_stream(is_modern));
                outlives_stream || open.id.is_none() || open.id != id
            });
            if is_modern {
                // There it is the end of the stream that cancels.
                return;
            }
        }
        match method {
            Some("notifications/initialized") => return self.initialized(line.clone()),
            Some("initialize") => {
                open.kind = Kind::Begins;
                self.forget_session();
                // It is repeated if the session is lost.
                let id = open.id.clone();
                self.initialize = id.map(|id| (line.clone(), id)).or(self.initialize.take());
            }
            Some("subscriptions/listen") => open.kind = Kind::Subscription,
            _ => {}
        }
        self.post(line.clone(), open);
    }

    /// Posts the body of a message.
    fn post(&mut self, body: Bytes, mut open: Open) {
        let (upstream, headers) = (self.upstream.clone(), self.headers.clone());
        open.session.clone_from(&headers.session);
        let (attempt, is_sent) = (open.call.clone(), Arc::default());
        let message = Message { upstream, headers, body, attempt, is_sent };
        self.open.push((open, message.post()));
    }

    fn forget_session(&mut self) {
        (self.headers.session, self.headers.version, self.is_lost) = (None, None, false);
    }

    /// Hears no more of messages of this kind.
    fn forget(&mut self, kind: Kind) {
        self.open.retain(|(open, _)| open.kind != kind);
    }

    /// Ends a message that was not sent.
    fn fail_unsent(&mut self, outgoing: Outgoing, failure: Failure) {
        let open = Open::of(&outgoing.line, outgoing.attempt);
        self.open.push((open, EventStream::only(ServerEvent::Failed(failure))));
    }

    /// Whether requests are open.
    pub(super) fn is_asked(&self) -> bool {
        self.open.iter().any(|(open, _)| open.is_asked())
    }

    /// Whether messages other than the server's own stream are open.
    pub(super) fn is_busy(&self) -> bool {
        self.held.is_some() || self.open.iter().any(|(open, _)| !open.lasts())
    }

    /// Whether the client speaks a version without `initialize`.
    const fn is_modern(&self) -> bool {
        self.initialize.is_none()
    }

    /// Opens the stream of the server's own messages.
    fn listen(&mut self) {
        self.forget(Kind::Stream);
        let heards = own_stream(self.upstream.clone(), self.headers.clone());
        let session = self.headers.session.clone();
        let open = Open { kind: Kind::Stream, session, ..Open::default() };
        self.open.push((open, EventStream::of_sent(heards)));
    }

    /// What is heard next, and of what.
    pub(super) async fn heard(&mut self) -> (Open, Option<ServerEvent>) {
        let deadline = self.held.as_ref().map(|held| sleep_until(held.until));
        let (at, heard) = tokio::select! {
            biased;
            found = next_of(&mut self.open, |(_, hearing)| hearing) => found,
            Some(()) = OptionFuture::from(deadline) => {
                if self.is_held_by(Kind::BeginsAgain) {
                    self.forget(Kind::BeginsAgain);
                    self.lose();
                } else {
                    self.release();
                }
                return Open::nothing();
            }
        };
        let open = self.open[at].0.clone();
        self.open[at].0.on_heard(heard.as_ref());
        if matches!(heard, None | Some(ServerEvent::Refused(_) | ServerEvent::Failed(_))) {
            drop(self.open.remove(at));
        }
        match open.kind {
            Kind::Begins | Kind::BeginsAgain => self.on_begun(&open, heard.as_ref()),
            Kind::Initialized if self.is_held_by(Kind::Initialized) => self.release(),
            _ => {}
        }
        // The client has had its answer.
        if open.kind == Kind::BeginsAgain { Open::nothing() } else { (open, heard) }
    }

    /// Sends the client's `initialize` once more; what is sent meanwhile waits.
    fn begin_again(&mut self) {
        let Some((line, id)) = self.initialize.clone() else { return };
        self.forget_session();
        self.post(line, Open { id: Some(id), kind: Kind::BeginsAgain, ..Open::default() });
        // What waits for it is answered before its own time is over.
        self.hold(Kind::BeginsAgain, self.patience / 2);
    }

    /// Says that the session has begun: what follows must not overtake it.
    fn initialized(&mut self, note: Bytes) {
        self.post(note, Open { kind: Kind::Initialized, ..Open::default() });
        self.hold(Kind::Initialized, REACHED);
        self.listen();
    }

    fn hold(&mut self, by: Kind, patience: Duration) {
        let messages = self.take_held();
        self.held = Some(Held { by, until: Instant::now() + patience, messages });
    }

    fn take_held(&mut self) -> Vec<Outgoing> {
        self.held.take().map(|held| held.messages).unwrap_or_default()
    }

    fn release(&mut self) {
        for message in self.take_held() {
            self.send(message);
        }
    }

    fn lose(&mut self) {
        self.is_lost = true;
        for message in self.take_held() {
            let facts = FailureInfo::new("refused", Ran::No, Verdict::TRANSIENT);
            let said = "The MCP server has lost the session and did not begin another; the tool did not run";
            self.fail_unsent(message, Failure::said(said, facts));
        }
    }

    fn is_held_by(&self, kind: Kind) -> bool {
        self.held.as_ref().is_some_and(|held| held.by == kind)
    }

    fn on_begun(&mut self, open: &Open, heard: Option<&ServerEvent>) {
        let is_again = open.kind == Kind::BeginsAgain;
        match heard {
            Some(ServerEvent::Head(_, headers)) => {
                self.headers.session = headers.get(SESSION).cloned();
            }
            Some(ServerEvent::Message { line, .. }) => {
                let answer: Value = serde_json::from_slice(line).unwrap_or_default();
                let version = answer["result"]["protocolVersion"].as_str();
                if let Some(version) = version.and_then(|it| HeaderValue::from_str(it).ok()) {
                    self.headers.version = Some(version);
                }
                if is_again && open.id.is_some() && answered(line) == open.id {
                    if answer["result"].is_object() {
                        let note = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                        self.initialized(Bytes::from_static(note));
                    } else {
                        self.lose();
                    }
                }
            }
            // Once it is answered, the end of its stream says nothing.
            Some(ServerEvent::Refused(_) | ServerEvent::Failed(_)) | None
                if is_again && self.is_held_by(Kind::BeginsAgain) =>
            {
                self.lose();
            }
            _ => {}
        }
    }

    /// The JSON-RPC error of a refusal, if it is the client's answer as it is.
    pub(super) fn answer(&self, open: &Open, response: &Response<Bytes>) -> Option<Bytes> {
        let (status, body) = (response.status(), response.body());
        error_code(body)?;
        // Each request of a batch has its own answer.
        open.batch.is_empty().then_some(())?;
        let passes = open.call.is_none() || self.is_modern() && is_protocol_refusal(status, body);
        let Line::One(answer) = jsonrpc::read(body) else { return None };
        let is_its_own = answer.id.and_then(Token::read) == open.id;
        (passes && is_its_own && !open.has_lost(response)).then(|| body.clone())
    }

    /// What a refusal says to the client. If the session is lost, it is begun again.
    pub(super) fn refused(&mut self, open: &Open, response: &Response<Bytes>) -> Failure {
        let status = response.status();
        let lost = open.has_lost(response);
        let verdict = if lost { Verdict::TRANSIENT } else { Verdict::Permanent };
        // A late refusal may be that of the session before.
        if lost && self.held.is_none() && open.session == self.headers.session {
            self.begin_again();
        }
        let said = jsonrpc::error(response.body()).and_then(|error| string(error.message?));
        let said = said.unwrap_or_default();
        let text = match &*said {
            "" => format!("The MCP server refused the request: {status}"),
            said => format!("The MCP server refused the request: {status}: {said}"),
        };
        Failure::said(text, FailureInfo::new("refused", Ran::No, verdict))
    }

    /// Ends the session.
    pub(super) async fn end_session(&mut self) {
        self.open.clear();
        if self.headers.session.is_none() {
            return;
        }
        let headers = self.headers.base();
        // What the server says to that changes nothing.
        let delete = self.upstream.request(Method::DELETE, headers, Bytes::new());
        let _ = self.upstream.pass(&delete, false).await;
    }
}
