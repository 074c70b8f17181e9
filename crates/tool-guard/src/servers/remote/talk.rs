//! The guard as the client of a server at an address: its session, its posts, and the server's own stream.
use super::{
    headers::{Own, repeated},
    open::{Call, Held, Kind, Listed, Mismatch, Open, list_request, listed, repeated_in},
    own_stream::{own_stream, to_endpoint},
};
use crate::{
    engine::{
        effects::Effects,
        failure::Failure,
        out::{Outgoing, Sent},
        server_event::{EventStream, Posted, ServerEvent, next_of},
    },
    servers::upstream::{Upstream, is_protocol_refusal},
    wire::{
        batch,
        http_names::{SESSION, VERSION},
        jsonrpc::{self, Line, Token, error_code, string},
        lines::Item,
        params::cancelled,
        until::until,
    },
};
use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tr_core::{FailureInfo, Ran, Verdict, internal::lock};

/// The talk with the server.
pub(super) struct Talk {
    upstream: Upstream,
    /// The operator's headers.
    own: Own,
    max_line: usize,
    pub(super) session: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
    /// The client's `initialize`, and its id.
    pub(super) initialize: Option<(Bytes, Token)>,
    /// The server has lost the session, and did not begin another.
    pub(super) is_lost: bool,
    /// Messages that wait for the begin of the session.
    pub(super) held: Option<Held>,
    /// How long a request may take.
    pub(super) patience: Duration,
    /// What is known of the server's tools.
    effects: Arc<Mutex<Effects>>,
    /// Calls that wait for the list of tools.
    mismatches: Vec<Mismatch>,
    open: Vec<(Open, EventStream)>,
}

impl Talk {
    pub(super) fn new(
        upstream: Upstream,
        own: Own,
        max_line: usize,
        effects: Arc<Mutex<Effects>>,
        patience: Duration,
    ) -> Self {
        Self {
            upstream,
            own,
            max_line,
            session: None,
            version: None,
            initialize: None,
            is_lost: false,
            held: None,
            patience,
            effects,
            mismatches: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Reads a line of the client's: its `initialize` is repeated if the session is lost.
    pub(super) fn on_client(&mut self, item: &Item) {
        let Item::Line(line) = item else { return };
        if let Line::One(message) = jsonrpc::read(line)
            && message.is_initialize()
            && let Some(id) = message.token()
        {
            self.initialize = Some((line.clone(), id));
        }
    }

    /// Sends a message.
    pub(super) fn send(&mut self, outgoing: Outgoing) {
        let begins =
            |line: &[u8]| matches!(jsonrpc::read(line), Line::One(it) if it.is_initialize());
        if self.is_lost && self.held.is_none() && !begins(&outgoing.line) {
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
                    self.fail(unsent, Failure::CANCELLED_BEFORE);
                }
                None => held.messages.push(outgoing),
            }
            return;
        }
        let Outgoing { line, attempt } = outgoing;
        let Line::One(message) = jsonrpc::read(&line) else {
            return self.post(
                line.clone(),
                attempt,
                None,
                batch::requests(&line).filter_map(Token::read).collect(),
                Kind::Message,
            );
        };
        let method = message.method.as_deref();
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
            let stays =
                |open: &Open| open.outlives_stream(is_modern) || open.id.is_none() || open.id != id;
            self.open.retain(|(open, _)| stays(open));
            self.mismatches.retain(|it| stays(&it.open));
            if is_modern {
                // There it is the end of the stream that cancels.
                return;
            }
        }
        let id = message.token().filter(|_| method.is_some());
        if method == Some("notifications/initialized") {
            return self.initialized(line.clone());
        }
        let kind = match method {
            Some("initialize") => Kind::Begins,
            Some("subscriptions/listen") => Kind::Subscription,
            _ => Kind::Message,
        };
        if kind == Kind::Begins {
            (self.session, self.version, self.is_lost) = (None, None, false);
        }
        self.post(line.clone(), attempt, id, Vec::new(), kind);
    }

    /// Posts the begin of a call, the request `id`, a batch of requests or another message.
    pub(super) fn post(
        &mut self,
        body: Bytes,
        attempt: Option<Sent>,
        id: Option<Token>,
        batch: Vec<Token>,
        kind: Kind,
    ) {
        let headers = self.headers(&body);
        let sent = attempt.clone();
        let call = sent.map(|sent| Call {
            body: body.clone(),
            sent,
            params: repeated_in(&headers),
            is_again: false,
        });
        let id = attempt.as_ref().map(|sent| sent.id.clone()).or(id);
        let hearing = self.upstream.post(Posted { headers, body, attempt });
        let session = self.session.clone();
        self.open.push((Open { id, batch, call, kind, session }, hearing));
    }

    /// Hears no more of messages of this kind.
    pub(super) fn forget(&mut self, kind: Kind) {
        self.open.retain(|(open, _)| open.kind != kind);
    }

    /// Ends a message that was not sent.
    pub(super) fn fail(&mut self, outgoing: Outgoing, failure: Failure) {
        let Outgoing { line, attempt } = outgoing;
        let (asked, batch) = match jsonrpc::read(&line) {
            Line::One(message) => {
                (message.id.filter(|_| message.method.is_some()).and_then(Token::read), Vec::new())
            }
            _ => (None, batch::requests(&line).filter_map(Token::read).collect()),
        };
        let call =
            attempt.map(|sent| Call { body: line, sent, params: Vec::new(), is_again: false });
        let id = call.as_ref().map(|call| call.sent.id.clone()).or(asked);
        let open = Open { id, batch, call, ..Open::default() };
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

    fn base(&self) -> HeaderMap {
        let mut headers = self.own.now();
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
        headers.extend(repeated(body, &lock(&self.effects).mirrored));
        headers
    }

    /// Opens the stream of the server's own messages.
    pub(super) fn listen(&mut self) {
        self.forget(Kind::Stream);
        let mut headers = self.base();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let heards = own_stream(self.upstream.clone(), headers, self.own.clone(), self.max_line);
        let session = self.session.clone();
        let open = Open { kind: Kind::Stream, session, ..Open::default() };
        self.open.push((open, EventStream::of_sent(heards)));
    }

    /// What is heard next, and of what.
    pub(super) async fn next(&mut self) -> (Open, Option<ServerEvent>) {
        let deadline = self.held.as_ref().map(|held| held.until);
        let (at, heard) = tokio::select! {
            biased;
            found = next_of(&mut self.open, |(_, hearing)| hearing) => found,
            () = until(deadline), if deadline.is_some() => {
                self.on_held_too_long();
                return Open::nothing();
            }
        };
        let open = self.open[at].0.clone();
        self.open[at].0.on_heard(heard.as_ref());
        if heard.is_none()
            || matches!(heard, Some(ServerEvent::Refused(_) | ServerEvent::Failed(_)))
        {
            drop(self.open.remove(at));
        }
        if matches!(open.kind, Kind::Begins | Kind::BeginsAgain | Kind::Initialized) {
            self.on_begun(&open, heard.as_ref());
        }
        match heard {
            heard if open.kind == Kind::List => self.on_list(at, heard),
            // The client has had its answer.
            _ if open.kind == Kind::BeginsAgain => {}
            Some(ServerEvent::Refused(response)) if open.may_relist(&response) => {
                if self.mismatches.is_empty() {
                    self.list(open.call.as_ref(), None);
                }
                self.mismatches.push(Mismatch { open: open.clone(), response });
            }
            heard => return (open, heard),
        }
        Open::nothing()
    }

    /// Asks for the list of tools, in the name of this call's client.
    fn list(&mut self, call: Option<&Call>, cursor: Option<&str>) {
        let Some(call) = call else { return };
        let (line, id) = list_request(&call.body, cursor);
        self.post(line, None, Some(id), Vec::new(), Kind::List);
    }

    /// Handles what is heard of the list.
    fn on_list(&mut self, at: usize, heard: Option<ServerEvent>) {
        match heard {
            Some(ServerEvent::Head(..) | ServerEvent::Between(_)) => return,
            Some(ServerEvent::Message { line, .. }) => match listed(&line) {
                Listed::Other => return,
                Listed::Page(result, cursor) => {
                    drop(self.open.remove(at));
                    lock(&self.effects).learn(&result);
                    if let Some(cursor) = cursor {
                        let call = self.mismatches.first().and_then(|it| it.open.call.clone());
                        return self.list(call.as_ref(), Some(&cursor));
                    }
                }
                Listed::None => drop(self.open.remove(at)),
            },
            Some(ServerEvent::Oversized(_)) => drop(self.open.remove(at)),
            Some(ServerEvent::Refused(_) | ServerEvent::Failed(_)) | None => {}
        }
        for Mismatch { mut open, response } in std::mem::take(&mut self.mismatches) {
            let Some(call) = &mut open.call else { continue };
            call.is_again = true;
            let (body, sent) = (call.body.clone(), call.sent.clone());
            let headers = self.headers(&body);
            // With the same headers, it would be refused again.
            let heards = if call.params == repeated_in(&headers) {
                EventStream::only(ServerEvent::Refused(response))
            } else {
                self.upstream.post(Posted { headers, body, attempt: Some(sent) })
            };
            open.session = self.session.clone();
            self.open.push((open, heards));
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
        let mut verdict = Verdict::Permanent;
        // A late refusal may be that of the session before.
        if lost && self.held.is_none() && open.session == self.session {
            self.begin_again();
        }
        if lost {
            verdict = Verdict::TRANSIENT;
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
    pub(super) async fn end(&mut self) {
        self.open.clear();
        if self.session.is_none() {
            return;
        }
        let headers = self.base();
        // What the server says to that changes nothing.
        let _ =
            self.upstream.pass(&to_endpoint(&self.upstream, Method::DELETE, headers), false).await;
    }
}
