//! Decides what the guard does with each line, in the order of arrival.
mod calls;
mod forward;
mod from_server;
mod requests;
mod start;

use self::requests::{CLOSED, CONNECTION_CLOSED, OVERLOADED, Requests, relayed};
pub(crate) use self::{
    calls::{Calls, Finished, TimeoutSweeper},
    requests::too_long,
};
use super::{
    answer::{self, CallReply},
    call::McpCall,
    equal_calls::EqualCalls,
    identity::Client,
    in_flight::{OpenError, Relay},
    notes,
    options::Mode,
    out::{Out, Outgoing},
    request::{Refused, Request},
    tool::{ServerLink, ServerTool},
    unknowns::{self, Ended},
    warnings::Repeatable,
    watching::Watching,
};
use crate::{
    terminal::short_id,
    wire::{
        batch::{self, Asked},
        jsonrpc::{self, INVALID_PARAMS, INVALID_REQUEST, Line, Message, PARSE_ERROR, Token},
        lines::Item,
        params::{self, Params},
        scan::Guess,
    },
};
use bytes::Bytes;
use futures_util::FutureExt;
use std::sync::Arc;
use tokio::time::Instant;
use tool_reliability::{Guarded, telemetry::TARGET};
use tr_core::{BoxError, ToolOutcome, canonical::Key, printable};

/// The guard between two streams of lines. It does no I/O: the lines for each side are collected in
/// [`to_client`](Self::to_client) and [`to_server`](Self::to_server).
pub(crate) struct Proxy {
    pub(crate) mode: Mode,
    wire: Arc<ServerLink>,
    stack: Guarded<ServerTool>,
    pub(crate) client: Client,
    /// Hears of the calls.
    pub(super) watching: Watching,
    /// The calls in flight.
    pub(crate) calls: Calls,
    /// Times out attempts.
    pub(crate) sweeper: TimeoutSweeper,
    requests: Requests,
    /// The key by which the last call is recognized.
    pub(crate) key: Option<Key>,
    /// How the last call ended.
    pub(crate) ended: Option<Ended>,
    /// The calls of all connections that no strong id tells apart.
    pub(super) equal_calls: EqualCalls,
    /// The server, for a person who reads its records.
    pub(super) server: Box<str>,
    /// The client, as `name/version`, once it has said so.
    client_name: Option<Box<str>>,
    /// Whether the server was started again, and no result has said so.
    is_back: bool,
    /// Lines for the client that are not written yet.
    pub(crate) to_client: Out,
    /// Lines for the server that are not written yet.
    pub(crate) to_server: Out,
}

impl Proxy {
    pub(crate) fn new(
        mode: Mode,
        wire: Arc<ServerLink>,
        stack: Guarded<ServerTool>,
        client: Client,
    ) -> Self {
        Self {
            calls: Calls::new(wire.clone()),
            sweeper: TimeoutSweeper::new(wire.clone()),
            mode,
            wire,
            stack,
            client,
            watching: Watching::default(),
            requests: Requests::default(),
            key: None,
            ended: None,
            equal_calls: EqualCalls::default(),
            server: Box::default(),
            client_name: None,
            is_back: false,
            to_client: Out::default(),
            to_server: Out::default(),
        }
    }

    /// Keeps the messages for both sides apart.
    pub(crate) fn with_messages(mut self) -> Self {
        (self.to_client, self.to_server) = (Out::apart(), Out::apart());
        self
    }

    /// Whether a begun call is still to be sent to the server: its claim may still be written to the disk.
    pub(crate) fn has_unsent(&self) -> bool {
        let wire = self.wire.lock();
        !wire.gone && wire.in_flight.has_unsent()
    }

    /// Whether the client waits for answers to requests that are no tool calls.
    pub(crate) fn is_asked(&self) -> bool {
        self.requests.are_awaited()
    }

    /// Handles calls that have made progress.
    pub(crate) fn on_step(&mut self, finished: Option<Finished>) {
        self.collect();
        let Some((call, repeatable, end)) = finished else { return };
        let Some(told) = self.finish(&call, repeatable, &end) else { return };
        let mut line = told.line(&call, &end);
        if self.is_back {
            let noted = notes::restarted(line.clone());
            self.is_back = noted == line;
            line = noted;
        }
        // It may be as large as the line.
        drop(end);
        self.to_client.message(Outgoing { line, attempt: None });
    }

    /// Handles the end of a call; returns what it says to the caller, if that waits for it.
    pub(crate) fn finish<'e>(
        &mut self,
        call: &Arc<McpCall>,
        repeatable: Repeatable,
        end: &'e Result<ToolOutcome, BoxError>,
    ) -> Option<CallReply<'e>> {
        let record = call.trace.record;
        if let (Some(equals), Some(earlier)) = (call.trace.equals, unknowns::left_unknown(end)) {
            self.wire.unknowns.note(equals, record, earlier, &call.tool);
            // Over HTTP, only callers that wait are asked for.
            if call.checked.is_some() && !self.client.is_over_http && !self.wire.host_runs {
                self.calls.go_on(self.wire.clone().go_on_asking(call.clone()));
            }
            if let Some(record) = record.filter(|_| self.mode == Mode::Enforce) {
                let (tool, record) = (printable(&call.tool), short_id(&record));
                tracing::warn!(target: TARGET, event = "outcome_unknown", state = "unknown", %tool, record);
            }
        }
        if end.as_ref().is_ok_and(ToolOutcome::from_cache) {
            call.trace.equals.iter().for_each(|it| self.wire.unknowns.received(it));
        } else if let (Ok(answer), Some(equals), Some(during)) =
            (end, &call.trace.equals, call.trace.late)
            && answer.error().is_none()
        {
            self.wire.unknowns.succeeded(equals, answer, during);
        }
        self.ended = Some(unknowns::ended(end, self.key));
        let wanted = self.wire.lock().in_flight.close(&call.id);
        (wanted && self.mode == Mode::Enforce).then(|| {
            let unrecorded = self.wire.unrecorded(call);
            unrecorded.iter().for_each(|key| self.watching.on_unrecorded(key));
            CallReply::of(call, repeatable, end, unrecorded.is_some(), &self.wire.unknowns)
        })
    }

    /// Collects the lines that attempts have sent.
    pub(crate) fn collect(&mut self) {
        let mut wire = self.wire.lock();
        for line in wire.outbox.drain(..) {
            self.to_server.message(line);
        }
    }

    /// To be called between two items that were read together: a call of the client's line before is begun
    /// first, and one that the server's line before ended is answered first, so that answers keep their order.
    pub(crate) fn between(&mut self) {
        if let Some(finished) = self.calls.step().now_or_never() {
            self.on_step(finished);
        }
    }

    /// Handles an item of the client's.
    pub(crate) fn on_client(&mut self, item: &Item) {
        self.collect();
        match item {
            Item::Line(line) => {
                if self.mode != Mode::Enforce {
                    self.to_server.line(line);
                }
                if self.mode != Mode::Off {
                    self.on_client_line(line);
                }
            }
            Item::Part(part) => self.to_server.part(part),
            Item::Oversized(line) if self.mode == Mode::Enforce => {
                tracing::warn!(target: TARGET, event = "line_dropped", from = "client", bytes = line.bytes);
                let refusal = too_long(line, line.id.as_deref());
                // An answer to the server, which has its own ids.
                if line.id.is_some() && !line.asks {
                    self.end_ask(line.token());
                    self.to_server.line(&refusal);
                } else {
                    self.to_client.line(&refusal);
                }
            }
            Item::Oversized(_) => {}
        }
    }

    /// Forwards a line; outside of [`Mode::Enforce`] it was forwarded already.
    fn pass_to_server(&mut self, line: &[u8]) {
        if self.mode == Mode::Enforce {
            self.to_server.line(line);
        }
    }

    fn pass_to_client(&mut self, line: &[u8]) {
        if self.mode == Mode::Enforce {
            self.to_client.line(line);
        }
    }

    fn on_client_line(&mut self, line: &Bytes) {
        match jsonrpc::read(line) {
            Line::One(message) if message.is_tool_call() => self.on_call(line, &message),
            Line::One(message) => self.on_client_message(line, &message),
            Line::Batch => self.on_client_batch(line),
            Line::Unreadable { may_call_tool: true } => self.refuse_unreadable(line),
            Line::Unreadable { .. } => self.forward_unreadable(line),
        }
    }

    /// Answers with an error of the guard's, if the guard has to answer.
    fn refuse(&mut self, id: &str, code: i64, text: &str) {
        self.pass_to_client(&answer::refusal(id, code, text));
    }

    /// Refuses the line under its id, if that can be read.
    fn refuse_unreadable(&mut self, line: &[u8]) {
        const WHY: &str = "the line is not valid JSON (syntax error, invalid UTF-8 or a duplicate member name) and could be a tool call, so it was not forwarded";
        match Guess::of(line) {
            // An answer to the server, which has its own ids.
            Some(guess) if guess.is_answer => {
                self.end_ask(Some(guess.id.clone()));
                self.pass_to_server(&answer::refusal(&guess.id.to_json(), PARSE_ERROR, WHY));
                self.refuse("null", PARSE_ERROR, WHY);
            }
            Some(guess) => self.refuse(&guess.id.to_json(), PARSE_ERROR, WHY),
            None => self.refuse("null", PARSE_ERROR, WHY),
        }
    }

    fn on_client_batch(&mut self, line: &[u8]) {
        const WHY: &str = "tools/call in a batch cannot be guarded, and nothing of the batch was done: send each message by itself";
        let asks = batch::asks(line, self.requests.room(), |id| self.is_taken(id));
        match asks {
            None if !self.refuse_batch(line, INVALID_REQUEST, WHY) => {
                tracing::warn!(target: TARGET, event = "call_without_id_dropped");
            }
            None => {}
            Some(_) if self.is_server_gone() => {
                self.refuse_batch(line, CONNECTION_CLOSED, CLOSED);
            }
            Some(others) => {
                batch::answered(line).for_each(|id| self.end_ask(Some(id)));
                if let Err(why) = self.forward(line, others) {
                    self.refuse_batch(line, OVERLOADED, why);
                }
            }
        }
    }

    /// Answers every request of a batch with an error; `false` if it has none.
    fn refuse_batch(&mut self, line: &[u8], code: i64, why: &str) -> bool {
        let answers = answer::refusals(&batch::asked(line), code, why);
        answers.map(|answers| self.pass_to_client(&answers)).is_some()
    }

    fn is_server_gone(&self) -> bool {
        self.mode == Mode::Enforce && self.wire.lock().gone
    }

    fn on_client_message(&mut self, line: &Bytes, message: &Message<'_>) {
        let Some(method) = message.method.as_deref() else {
            self.end_ask(message.token());
            return self.pass_to_server(line);
        };
        let Some((id, raw)) = message.id.and_then(|raw| Some((Token::read(raw)?, raw))) else {
            return match method {
                "notifications/cancelled" if message.id.is_none() => self.on_cancel(line, message),
                _ => self.pass_to_server(line),
            };
        };
        if self.is_server_gone() {
            return self.refuse(raw.get(), CONNECTION_CLOSED, CLOSED);
        }
        if let Some(client) = params::initializes(message) {
            self.know_client(client);
        }
        let (place, is_list) = (jsonrpc::range(line, raw), method == "tools/list");
        let lasts = (method == "subscriptions/listen").then(|| id.clone());
        if let Err(why) = self.forward(line, vec![Asked { id, place, is_list }]) {
            self.refuse(raw.get(), OVERLOADED, why);
        }
        if let Some(id) = lasts {
            self.requests.unawait(&id);
        }
    }

    /// The client has answered the server's request, or the server no longer wants to know.
    fn end_ask(&mut self, id: Option<Token>) {
        if let Some(id) = id
            && self.wire.lock().in_flight.end_ask(&id, Instant::now().into_std())
        {
            // The clock of the calls stood, and goes on: the timer may be set too late.
            self.sweeper.timer = None;
        }
    }

    fn on_cancel(&mut self, line: &Bytes, message: &Message<'_>) {
        let raw_id = Params::of(message).request_id;
        let relay = match raw_id.and_then(Token::read) {
            Some(id) => self.wire.lock().in_flight.cancel(&id).unwrap_or_else(|| {
                let renamed = self.requests.renamed(&id);
                let relay =
                    renamed.map_or(Relay::Raw, |wire_id| Relay::With(wire_id.to_json().into()));
                self.requests.unawait(&id);
                relay
            }),
            None => Relay::Raw,
        };
        if let Some(line) = relayed(line, raw_id, &relay) {
            self.pass_to_server(&line);
        }
    }

    fn on_call(&mut self, line: &Bytes, message: &Message<'_>) {
        let id_text = message.id.map_or("null", |id| id.get());
        let request = match Request::read(line, message, &self.client) {
            Ok(request) => request,
            Err(Refused::Notification) => {
                return tracing::warn!(target: TARGET, event = "call_without_id_dropped");
            }
            Err(Refused::Id) => {
                let why = "the call was not made: the id of tools/call must be a string or an unambiguous number";
                return self.refuse("null", INVALID_REQUEST, why);
            }
            Err(Refused::Params(why)) => {
                let why = format!("the call was not made: {why}");
                return self.refuse(id_text, INVALID_PARAMS, &why);
            }
        };
        match self.begin(request) {
            Ok(finished) => self.on_step(finished),
            Err(OpenError::InUse) => self.refuse(id_text, INVALID_REQUEST, IN_USE),
            Err(OpenError::TooMany) => self.refuse(id_text, OVERLOADED, TOO_MANY_CALLS),
        }
    }

    /// Begins a call. May return it, or another one, if it has ended.
    pub(crate) fn begin(&mut self, mut request: Request) -> Result<Option<Finished>, OpenError> {
        request.call.is_id_taken = self.requests.open.contains_key(&request.call.id);
        let mut wire = self.wire.lock();
        if wire.observe {
            wire.in_flight.forget(&request.call.id);
        }
        wire.in_flight.open(&request.call)?;
        drop(wire);
        Ok(self.start(request))
    }
}

pub(crate) const TOO_MANY_CALLS: &str = "too many calls are in flight: the tool did not run";

const IN_USE: &str =
    "a call with this id is still in flight: this call was not made; send it under another id";

#[cfg(test)]
mod tests;
