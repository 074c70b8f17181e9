//! Decides about the calls of hosts: events in, answers out, in the order of arrival. It does no I/O; the guard
//! of `tool-guard mcp` is inside, for which the host is client and server at once.
use super::{
    calls,
    events::{After, Answer, Before, Decision, Event, Fault, TurnEnd},
    table::{Call, Connection, State, Table, Turns},
};
use crate::{
    engine::{
        answer::CallReply,
        failure::Failure,
        options::Mode,
        proxy::{Finished, Proxy, TOO_MANY_CALLS},
    },
    wire::{jsonrpc::Token, lines::Item, mirrored::MAX_TOOLS},
};
use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};
use tokio::time::Instant;
use tr_core::{Effect, FailureInfo, Ran, SystemClock, Verdict, WallClock as _, code};

/// An answer for a connection.
pub(crate) type Outgoing = (Connection, Answer);

/// The calls of hosts, and the guard that decides about them.
pub(crate) struct Decider {
    pub(crate) proxy: Proxy,
    pub(crate) table: Table,
    turns: Turns,
    /// What hosts said about tools, so that the guard learns each word once.
    told: HashSet<(Box<str>, Option<Effect>)>,
    /// How long a host waits for a decision.
    patience: Duration,
    /// The answers that are not written yet.
    pub(crate) answers: VecDeque<Outgoing>,
}

const NOT_DECIDED: &str = "the guard could not decide in time, and this call was not made: an equal call may \
                           still run, or the records are busy; try again later";

const HOST_GONE: &str = "the host ended before it told how the call ended";

/// The id of a call in the guard.
fn token(number: u64) -> Token {
    Token::Number(number.to_string().into())
}

impl Decider {
    pub(crate) fn new(proxy: Proxy, patience: Duration) -> Self {
        Self {
            proxy: proxy.with_messages(),
            table: Table::default(),
            turns: Turns::default(),
            told: HashSet::new(),
            patience,
            answers: VecDeque::new(),
        }
    }

    /// Whether no call is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.table.is_idle() && self.proxy.calls.is_empty()
    }

    /// Handles an item of a host's. Every line gets one answer.
    pub(crate) fn on_item(&mut self, connection: Connection, item: &Item, now: Instant) {
        match item {
            Item::Line(line) | Item::Part(line) => match Event::read(line) {
                Ok((id, event)) => self.on_event(connection, id, event, now),
                Err(fault) => self.fault(connection, fault),
            },
            Item::Oversized(long) => {
                let error =
                    format!("the line has {} bytes, more than --max-line allows", long.bytes);
                self.fault(connection, Fault { id: long.token(), error });
            }
        }
    }

    fn on_event(&mut self, connection: Connection, id: Token, event: Event<'_>, now: Instant) {
        match event {
            Event::Before(before) => self.on_before(connection, id, &before, now),
            Event::After(after) => self.on_after(connection, id, &after),
            Event::TurnEnd(TurnEnd { session, .. }) => {
                let number = self.table.number();
                self.turns.end(&session, number);
                self.answers.push_back((connection, Answer::new(&id, Decision::None)));
            }
        }
    }

    fn on_before(&mut self, connection: Connection, id: Token, before: &Before<'_>, now: Instant) {
        if self.table.is_open(connection, &id) {
            let error = "a call with this id has not ended: give each call an id of its own";
            return self.refuse(connection, id, error);
        }
        let number = self.table.number();
        let counted = self.turns.of(before.session.as_deref());
        let turn = before.turn.as_deref().or(counted.as_deref());
        let request = calls::request(token(number), before, turn, &self.proxy.client);
        let (request, params) = match request {
            Ok(request) => request,
            Err(why) => {
                let why = format!("the call was not made: {why}");
                let answer = Answer::block(&id, code::INVALID_ENVELOPE, why);
                return self.answers.push_back((connection, answer));
            }
        };
        self.tell(&before.tool, before.effect);
        let shows = self.proxy.is_asked_about_others(&before.tool);
        let begun = SystemClock.unix_ms();
        let shows = shows.then(|| (before.tool.clone(), request.arguments.clone(), begun));
        let is_off = self.proxy.mode == Mode::Off;
        let finished = match if is_off { Ok(None) } else { self.proxy.begin(request) } {
            Ok(finished) => finished,
            Err(_) if self.proxy.mode != Mode::Enforce => None,
            Err(_) => {
                let answer = Answer::block(&id, "refused", TOO_MANY_CALLS);
                return self.answers.push_back((connection, answer));
            }
        };
        let name = before.call.clone().map(|name| (before.session.clone(), name));
        let state = State::Deciding(now + self.patience);
        self.table.add(number, Call { connection, id, name, params, shows, state });
        if self.proxy.mode != Mode::Enforce {
            self.allow(number);
        }
        self.on_step(finished);
    }

    /// Tells the guard what the host says about a tool.
    fn tell(&mut self, tool: &str, effect: Option<Effect>) {
        let word = (tool.into(), effect);
        if self.told.contains(&word) {
            return;
        }
        self.proxy.learn(tool, effect);
        if self.told.len() < MAX_TOOLS {
            self.told.insert(word);
        }
    }

    fn on_after(&mut self, connection: Connection, id: Token, after: &After<'_>) {
        let number = match (after.before(), &after.call) {
            (Some(before), _) => self.table.by_id(connection, &before),
            (None, Some(call)) => self.table.by_name(&(after.session.clone(), call.clone())),
            (None, None) => None,
        };
        let found = number.and_then(|number| Some((number, self.table.get_mut(number)?)));
        let Some((number, call)) = found else {
            let error = "no such call is open: it was never announced to this guard, was not allowed, or has ended";
            return self.refuse(connection, id, error);
        };
        let is_late = match &call.state {
            State::Deciding(_) => {
                let error = "the call is not decided yet: wait for the answer to its line, and make it only if that allows it";
                return self.refuse(connection, id, error);
            }
            State::Ending(..) => {
                return self.refuse(connection, id, "this call has an end already");
            }
            State::Allowed => {
                call.state = State::Ending(connection, id.clone());
                false
            }
            State::GivenUp => true,
        };
        let (shows, result) = (call.shows.take(), calls::result(after));
        self.proxy.on_host_end(&token(number), &result);
        if let Some(shows) = shows.filter(|_| !after.is_failure()) {
            self.proxy.on_answer_about_others(shows, result);
        }
        if is_late || self.proxy.mode != Mode::Enforce {
            // It settles the record; no answer of the model's waits for notes.
            self.table.remove(number);
            self.answers.push_back((connection, Answer::new(&id, Decision::None)));
        }
        self.collect();
    }

    fn refuse(&mut self, connection: Connection, id: Token, error: &str) {
        self.fault(connection, Fault { id: Some(id), error: error.into() });
    }

    fn fault(&mut self, connection: Connection, fault: Fault) {
        self.answers.push_back((connection, Answer::fault(fault)));
    }

    /// Handles calls that have made progress.
    pub(crate) fn on_step(&mut self, finished: Option<Finished>) {
        self.collect();
        if let Some((call, repeatable, end)) = finished
            && let Some(mut told) = self.proxy.finish(&call, repeatable, &end)
            && let Some(number) = call.id.number()
        {
            told.notes.extend(calls::to_ask(&call, &told, &end));
            self.end(number, told);
        }
    }

    /// Takes what the guard sends: a call that it sends is allowed.
    fn collect(&mut self) {
        self.proxy.collect();
        while let Some(outgoing) = self.proxy.to_server.next() {
            let attempt = outgoing.attempt.and_then(|attempt| attempt.id.number());
            attempt.into_iter().for_each(|number| self.allow(number));
        }
    }

    fn allow(&mut self, number: u64) {
        let Some(call) = self.table.get_mut(number) else {
            // Its host was refused.
            let facts = FailureInfo::new(code::CANCELLED, Ran::No, Verdict::TRANSIENT);
            let failure = Failure::said("the host does not make the call", facts);
            return self.proxy.on_failed(&token(number), failure);
        };
        call.state = State::Allowed;
        let answer = match call.params.take() {
            Some(params) => {
                Answer { params: Some(params), ..Answer::new(&call.id, Decision::Rewrite) }
            }
            None => Answer::new(&call.id, Decision::Allow),
        };
        self.answers.push_back((call.connection, answer));
    }

    fn end(&mut self, number: u64, told: CallReply<'_>) {
        let Some(call) = self.table.get_mut(number) else { return };
        let answer = match &call.state {
            State::Deciding(_) => (call.connection, calls::block(told, &call.id)),
            State::Ending(connection, id) => (*connection, calls::notes(told, id)),
            State::Allowed => return self.table.give_up(number),
            State::GivenUp => return,
        };
        self.answers.push_back(answer);
        self.table.remove(number);
    }

    /// Answers the hosts that have: their calls are not made.
    pub(crate) fn on_time(&mut self, now: Instant) {
        for number in self.table.overdue(now) {
            let Some(call) = self.table.remove(number) else { continue };
            let mut answer = Answer::block(&call.id, code::IDEMPOTENCY_IN_FLIGHT, NOT_DECIDED);
            answer.retriable = Some(true);
            self.answers.push_back((call.connection, answer));
            self.proxy.cancel(&token(number));
        }
        self.collect();
    }

    /// Ends every call whose end no host can tell any more: one that was allowed may have run.
    pub(crate) fn on_hosts_gone(&mut self) {
        for number in self.table.open() {
            let Some(call) = self.table.remove(number) else { continue };
            match call.state {
                State::Deciding(_) => {
                    let answer = Answer::block(&call.id, code::CANCELLED, HOST_GONE);
                    self.answers.push_back((call.connection, answer));
                    self.proxy.cancel(&token(number));
                }
                _ => {
                    let facts = FailureInfo::new("host_gone", Ran::Unknown, Verdict::Permanent);
                    self.proxy.on_failed(&token(number), Failure::said(HOST_GONE, facts));
                }
            }
        }
        self.collect();
    }
}

#[cfg(test)]
mod tests;
