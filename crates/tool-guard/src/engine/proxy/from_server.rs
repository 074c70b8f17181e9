//! Decides what the proxy does with each line of the server: answers and progress go to the call that waits for them,
//! the rest to the client. Also ends what waits for a server that crashed or ended, and the calls that a host runs itself.
use super::{CONNECTION_CLOSED, Proxy, relayed, requests::Open, too_long};
use crate::{
    engine::{
        answer,
        asking::Seen,
        failure::{Answer, Ending, Failure},
        guessed,
        in_flight::{Answered, Relay},
        options::Mode,
    },
    wire::{
        batch,
        elements::unchecked_elements,
        jsonrpc::{self, LIST_CHANGED, Line, Message, Token},
        lines::{Item, Oversized},
        mark,
        params::Params,
        scan::{self, Guess},
    },
};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::ops::Range;
use tokio::time::Instant;
use tool_reliability::{idempotency::Resolution, telemetry::TARGET};
use tr_core::{Effect, Json, Ran, ToolOutcome, internal::lock};

/// What reads a message of a batch, besides the client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Concern {
    None,
    /// The guard: it says that the tools changed, answers a request that is no tool call, or asks the client.
    Guard,
    /// The call that it answers, or whose progress it reports.
    Call,
}

impl Proxy {
    /// Handles an item from the server.
    pub(crate) fn on_server(&mut self, item: &Item) {
        match item {
            Item::Line(line) => {
                if self.mode == Mode::Enforce {
                    return self.on_server_line(&mark::without(line));
                }
                self.to_client.line(line);
                if self.mode != Mode::Off {
                    self.on_server_line(line);
                }
            }
            Item::Part(part) => self.to_client.part(part),
            Item::Oversized(_) if self.mode == Mode::Off => {}
            Item::Oversized(line) => self.on_oversized(line),
        }
    }

    fn on_server_line(&mut self, line: &Bytes) {
        // Before `jsonrpc::read`, which takes a batch with one malformed message as unreadable.
        if scan::bare(line).starts_with(b"[") {
            return self.on_server_batch(line);
        }
        match jsonrpc::read(line) {
            Line::One(message) => self.on_server_message(line, &message),
            Line::Batch | Line::Unreadable { .. } => self.on_unreadable(line),
        }
    }

    fn on_server_message(&mut self, line: &Bytes, message: &Message<'_>) {
        match message.method.as_deref() {
            None if message.is_response() => self.on_answer(line, message),
            Some("notifications/progress") => self.on_progress(line, message),
            Some(LIST_CHANGED) => {
                lock(&self.wire.effects).forget();
                self.pass_to_client(line);
            }
            Some(method) => {
                self.note_ask(method, message);
                let ended = || Params::of(message).request_id.and_then(Token::read);
                // The client knows nothing of the guard's own calls.
                let is_ours = |id: &Token| self.wire.lock().in_flight.is_ours(id);
                if method != "notifications/cancelled" || !ended().as_ref().is_some_and(is_ours) {
                    self.pass_to_client(line);
                }
            }
            None => self.pass_to_client(line),
        }
    }

    /// What the server asks the client for, or no longer asks for.
    fn note_ask(&mut self, method: &str, message: &Message<'_>) {
        match message.token() {
            // Clients answer it at once.
            _ if method == "ping" => {}
            Some(id) => self.wire.lock().in_flight.ask(id, Instant::now().into_std()),
            None if method == "notifications/cancelled" => {
                self.end_ask(Params::of(message).request_id.and_then(Token::read));
            }
            None => {}
        }
    }

    /// Forwards a batch whole, unless something in it belongs to a call: then its messages pass one by one.
    /// Parts that are no message pass together, since there may be millions.
    fn on_server_batch(&mut self, line: &Bytes) {
        let parts = || unchecked_elements(line).into_iter().flatten();
        let Some(concern) = self.concern_of_batch(line) else { return self.pass_to_client(line) };
        if concern < Concern::Call {
            if concern == Concern::Guard {
                parts().for_each(|part| self.learn_from(part));
            }
            return self.pass_to_client(line);
        }
        let mut others: Option<Range<usize>> = None;
        for part in parts() {
            if batch::may_be_message(part) {
                self.pass_others(line, others.take());
                self.on_server_line(&[part, b"\n"].concat().into());
            } else {
                let at = part.as_ptr().addr() - line.as_ptr().addr();
                let begun = others.map_or(at, |it| it.start);
                others = Some(begun..at + part.len());
            }
        }
        self.pass_others(line, others);
    }

    /// The most that a message of a batch concerns, of which no more are read than are needed to know; `None` if the
    /// batch is not complete.
    fn concern_of_batch(&self, line: &Bytes) -> Option<Concern> {
        let (mut parts, mut most) = (unchecked_elements(line)?, Concern::None);
        for part in &mut parts {
            if most < Concern::Call && batch::may_be_message(part) {
                most = most.max(self.concern(part));
            }
        }
        (!parts.torn).then_some(most)
    }

    /// Handles a message of [`Concern::Guard`] in a batch that passes whole; ignores others.
    fn learn_from(&mut self, part: &[u8]) {
        if !batch::may_be_message(part) {
            return;
        }
        let Line::One(message) = jsonrpc::read(part) else { return };
        match (message.method.as_deref(), message.token()) {
            (Some(LIST_CHANGED), _) => lock(&self.wire.effects).forget(),
            (None, Some(id)) if message.is_response() => {
                drop(self.on_others_answer(&id, &message));
            }
            (Some(method), _) => self.note_ask(method, &message),
            _ => {}
        }
    }

    /// Handles an answer to a request that is no tool call; returns that request.
    fn on_others_answer(&mut self, id: &Token, message: &Message<'_>) -> Option<Open> {
        let open = self.requests.open.remove(id)?;
        if let Some(result) = message.result.filter(|_| open.is_list) {
            lock(&self.wire.effects).learn(result);
        }
        Some(open)
    }

    /// Forwards parts that are no message, as a batch or alone.
    fn pass_others(&mut self, line: &[u8], others: Option<Range<usize>>) {
        let Some(others) = others.map(|others| &line[others]) else { return };
        if memchr::memchr(b',', others).is_some() {
            self.pass_to_client(&[b"[", others, b"]\n"].concat());
        } else {
            self.pass_to_client(&[others, b"\n"].concat());
        }
    }

    /// What reads a message of a batch, besides the client.
    fn concern(&self, part: &[u8]) -> Concern {
        let answered = match jsonrpc::read(part) {
            Line::One(message) if message.is_response() => message.token(),
            Line::One(message) => {
                return match message.method.as_deref() {
                    Some("notifications/progress") => Concern::Call,
                    Some(LIST_CHANGED | "notifications/cancelled") => Concern::Guard,
                    _ if message.id.is_some() => Concern::Guard,
                    _ => Concern::None,
                };
            }
            Line::Unreadable { .. } => {
                Guess::of(part).filter(|guess| guess.is_response).map(|guess| guess.id)
            }
            Line::Batch => None,
        };
        match answered {
            Some(id) if self.wire.lock().in_flight.knows(&id) => Concern::Call,
            Some(id) if self.requests.open.contains_key(&id) => Concern::Guard,
            _ => Concern::None,
        }
    }

    /// Replaces bytes that are no UTF-8 as a client's decoder would, if the line then matches a call.
    fn on_unreadable(&mut self, line: &Bytes) {
        if let Some(repaired) = jsonrpc::repaired(line)
            && let Line::One(message) = jsonrpc::read(&repaired)
            && message.is_response()
            && message.token().is_some_and(|id| self.wire.lock().in_flight.knows(&id))
        {
            return self.on_answer(&repaired, &message);
        }
        match Guess::of(line).filter(|guess| guess.is_response) {
            Some(guess) => self.on_opaque_answer(line, guess),
            None => self.pass_to_client(line),
        }
    }

    /// Handles an answer that is no valid JSON: `NaN`, raw control characters, a duplicate name. It passes
    /// once, unchanged.
    fn on_opaque_answer(&mut self, line: &Bytes, guess: Guess) {
        if let Some(open) = self.requests.open.remove(&guess.id) {
            return self.pass_to_client(&open.answer(line, guess.place));
        }
        let outcome = guessed::guessed(line, &guess, false);
        let answer = Answer { line: line.clone(), id_range: guess.place, opaque: true };
        self.end_attempt(&guess.id, Some(answer), |_| outcome);
    }

    fn on_progress(&mut self, line: &Bytes, message: &Message<'_>) {
        let Params { progress, progress_token: raw, .. } = Params::of(message);
        let progress = progress.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let now = Instant::now().into_std();
        let relay = match raw.and_then(Token::read) {
            Some(token) => self.wire.lock().in_flight.progressed(&token, progress, now),
            None => Relay::Raw,
        };
        if let Some(line) = relayed(line, raw, &relay) {
            self.pass_to_client(&line);
        }
    }

    fn on_answer(&mut self, line: &Bytes, message: &Message<'_>) {
        let (Some(raw), Some(id)) = (message.id, message.token()) else {
            return self.pass_to_client(line);
        };
        if let Some(open) = self.on_others_answer(&id, message) {
            return self.pass_to_client(&open.answer(line, jsonrpc::range(line, raw)));
        }
        let id_range = jsonrpc::range(line, raw);
        let answer = Answer { line: line.clone(), id_range, opaque: false };
        self.end_attempt(&id, Some(answer), |kept| answer::outcome(message, kept));
    }

    /// Ends the attempt that this answers with the outcome, which is to be kept or not; else it may pass.
    pub(super) fn end_attempt(
        &mut self,
        id: &Token,
        answer: Option<Answer>,
        outcome: impl FnOnce(bool) -> ToolOutcome,
    ) {
        let answered = self.wire.lock().in_flight.answered(id);
        match answered {
            Answered::Attempt { ending, recorded } => {
                let outcome = outcome(recorded || self.wire.compares);
                // If sending fails, the call was dropped between two polls, and its drop has cancelled the
                // attempt.
                let _ = ending.send(Ending::Answered(answer, outcome));
            }
            Answered::Late { owed, pass } => {
                self.wire.settle(&owed, outcome(true));
                answer.filter(|_| pass).iter().for_each(|it| self.pass_to_client(&it.line));
            }
            Answered::Unmatched => answer.iter().for_each(|it| self.pass_to_client(&it.line)),
        }
    }

    /// Reports the loss of a line that is too long to the side that waits for it.
    fn on_oversized(&mut self, line: &Oversized) {
        if self.mode == Mode::Enforce {
            tracing::warn!(target: TARGET, event = "line_dropped", from = "server", bytes = line.bytes);
        }
        let Some(id) = line.token() else { return };
        // The server has its own ids: this request answers no call.
        if line.asks {
            return self.pass_to_server(&too_long(line, line.id.as_deref()));
        }
        if let Some(open) = self.requests.open.remove(&id) {
            let id = open.client_id().or(line.id.as_deref());
            return self.pass_to_client(&too_long(line, id));
        }
        let answered = self.wire.lock().in_flight.answered(&id);
        match answered {
            Answered::Attempt { ending, .. } => {
                let ran = if line.is_no_success { Ran::Unknown } else { Ran::Yes };
                let _ = ending.send(Ending::Failed(Failure::oversized(line.bytes, ran)));
            }
            // Whether another answer says that the tool ran is not known.
            Answered::Late { owed, .. } if !line.is_no_success => {
                self.wire.settle(&owed, ToolOutcome::not_kept());
            }
            Answered::Late { .. } | Answered::Unmatched => {}
        }
    }

    /// Ends the attempt, or another request of the client's, under this id on the wire, which will not be
    /// answered.
    pub(crate) fn on_failed(&mut self, id: &Token, failure: Failure) {
        if self.on_request_failed(id, &failure.to_string()) {
            return;
        }
        let answered = self.wire.lock().in_flight.answered(id);
        match answered {
            Answered::Attempt { ending, .. } => drop(ending.send(Ending::Failed(failure))),
            Answered::Late { owed, .. }
                if failure.ran() == Ran::No && !owed.is_one_of_several() =>
            {
                self.wire.resolve(&owed, Resolution::DidNotRun);
            }
            Answered::Late { .. } | Answered::Unmatched => {}
        }
    }

    /// Ends a request that is no tool call; `false` if there is none under this id.
    pub(crate) fn on_request_failed(&mut self, id: &Token, why: &str) -> bool {
        let Some(open) = self.requests.open.remove(id) else { return false };
        let text = id.to_json();
        let client = open.client_id().unwrap_or(&text).to_owned();
        self.refuse(&client, CONNECTION_CLOSED, why);
        true
    }

    /// Answers everything that waits for the server, which has ended for good, or has crashed and should be up again at
    /// `up_at`. What is safe to repeat is repeated then.
    pub(crate) fn on_server_ended(&mut self, up_at: Option<Instant>) {
        let mut wire = self.wire.lock();
        wire.gone |= up_at.is_none();
        wire.up_at = up_at;
        wire.in_flight.server_gone(|| match up_at {
            Some(_) => Failure::SERVER_CRASHED,
            None => Failure::SERVER_GONE,
        });
        drop(wire);
        self.to_server.clear();
        self.close_requests();
    }

    /// Notes that the server is up again, and sends the client `tools/list_changed`, as its tools may differ.
    pub(crate) fn on_server_back(&mut self) {
        self.wire.lock().up_at = None;
        self.is_back = true;
        let line = format!(r#"{{"jsonrpc":"2.0","method":"{LIST_CHANGED}"}}"#) + "\n";
        self.to_client.line(line.as_bytes());
    }

    /// The host says what a tool does.
    pub(crate) fn learn(&self, tool: &str, effect: Option<Effect>) {
        let said = effect.filter(|effect| *effect != Effect::Mutating);
        lock(&self.wire.effects).list(tool.into(), said, effect == Some(Effect::Mutating));
    }

    /// The host has made the call, with this result.
    pub(crate) fn on_host_end(&mut self, id: &Token, result: &RawValue) {
        self.end_attempt(id, None, |kept| answer::of_result(result, kept));
    }

    /// Whether the answers of this tool show how calls of others ended.
    pub(crate) fn is_asked_about_others(&self, tool: &str) -> bool {
        self.mode == Mode::Enforce && !lock(&self.wire.effects).declared.checked_by(tool).is_empty()
    }

    /// The host has made a call of such a tool with these params, which began then, with this result.
    pub(crate) fn on_answer_about_others(
        &mut self,
        (tool, params, begun): (Box<str>, Json, u64),
        result: Box<RawValue>,
    ) {
        let asked = lock(&self.wire.effects).declared.checked_by(&tool);
        let seen = Seen { params, begun, result };
        self.calls.go_on(self.wire.clone().settle_shown(asked, self.server.clone(), seen));
    }

    /// The host waits for the call no longer.
    pub(crate) fn cancel(&self, id: &Token) {
        self.wire.lock().in_flight.cancel(id);
    }
}
