//! The calls of hosts that have not ended, and the names by which events find them.
use crate::wire::jsonrpc::Token;
use indexmap::IndexMap;
use serde_json::value::RawValue;
use std::collections::{HashMap, VecDeque};
use tokio::time::Instant;
use tr_core::Json;

/// How many given-up calls are remembered, so that a late end still settles the record.
const GIVEN_UP: usize = 10_000;
/// How many sessions' turns are counted, those that ended one last.
const SESSIONS: usize = 10_000;

/// A connection of a host's.
pub(crate) type Connection = u64;

/// Where a call stands.
#[derive(Debug)]
pub(crate) enum State {
    /// The host waits for the decision, until then.
    Deciding(Instant),
    /// The host makes it.
    Allowed,
    /// The host has told its end with this line, and waits for the notes.
    Ending(Connection, Token),
    /// Its end did not come in time.
    GivenUp,
}

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) connection: Connection,
    /// The id of the line that announced it.
    pub(crate) id: Token,
    /// Its session, and the host's name of it, if it has one.
    pub(crate) name: Option<Name>,
    /// The params to make it with, if the host's are not these.
    pub(crate) params: Option<Box<RawValue>>,
    /// Its tool, its params and when it began, in milliseconds since 1970, if its answer may show how other calls ended.
    pub(crate) shows: Option<(Box<str>, Json, u64)>,
    pub(crate) state: State,
}

/// A host's name of a call, and the session in which it is valid.
pub(crate) type Name = (Option<Box<str>>, Box<str>);

/// The calls, by number.
#[derive(Debug, Default)]
pub(crate) struct Table {
    last: u64,
    calls: HashMap<u64, Call>,
    by_id: HashMap<(Connection, Token), u64>,
    /// Of calls with the same name the newest.
    by_name: HashMap<Name, u64>,
    given_up: VecDeque<u64>,
}

impl Table {
    /// A number for a call.
    pub(crate) const fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn add(&mut self, number: u64, call: Call) {
        self.by_id.insert((call.connection, call.id.clone()), number);
        if let Some(name) = &call.name {
            self.by_name.insert(name.clone(), number);
        }
        self.calls.insert(number, call);
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Call> {
        self.calls.get_mut(&number)
    }

    /// Whether a call that has not ended was announced under this id.
    pub(crate) fn is_open(&self, connection: Connection, id: &Token) -> bool {
        let call = self.by_id.get(&(connection, id.clone())).and_then(|it| self.calls.get(it));
        call.is_some_and(|call| !matches!(call.state, State::GivenUp))
    }

    pub(crate) fn by_id(&self, connection: Connection, id: &Token) -> Option<u64> {
        self.by_id.get(&(connection, id.clone())).copied()
    }

    pub(crate) fn by_name(&self, name: &Name) -> Option<u64> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Call> {
        let call = self.calls.remove(&number)?;
        let id = (call.connection, call.id.clone());
        if self.by_id.get(&id) == Some(&number) {
            self.by_id.remove(&id);
        }
        if let Some(name) = &call.name
            && self.by_name.get(name) == Some(&number)
        {
            self.by_name.remove(name);
        }
        Some(call)
    }

    /// Keeps a call whose end did not come in time, for a while.
    pub(crate) fn give_up(&mut self, number: u64) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        call.state = State::GivenUp;
        self.given_up.push_back(number);
        if self.given_up.len() > GIVEN_UP
            && let Some(first) = self.given_up.pop_front()
            && self.calls.get(&first).is_some_and(|call| matches!(call.state, State::GivenUp))
        {
            self.remove(first);
        }
    }

    /// When the first host has waited long enough for a decision.
    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        self.calls.values().filter_map(Call::deadline).min()
    }

    /// The calls whose hosts have.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<u64> {
        self.all(|call| call.deadline().is_some_and(|until| until <= now))
    }

    /// The calls that have not ended.
    pub(crate) fn open(&self) -> Vec<u64> {
        self.all(|call| !matches!(call.state, State::GivenUp))
    }

    /// In the order of their beginning.
    fn all(&self, is_wanted: impl Fn(&Call) -> bool) -> Vec<u64> {
        let wanted = self.calls.iter().filter(|(_, call)| is_wanted(call));
        let mut all: Vec<_> = wanted.map(|(number, _)| *number).collect();
        all.sort_unstable();
        all
    }

    /// Whether a host makes a call, or waits for a decision.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.values().all(|call| matches!(call.state, State::GivenUp))
    }
}

impl Call {
    const fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Deciding(until) => Some(until),
            _ => None,
        }
    }
}

/// The turns of sessions whose hosts tell their ends.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Those that ended last are last.
    ended: IndexMap<Box<str>, u64>,
}

impl Turns {
    /// Ends the session's turn. Turns are numbered through all sessions, so a session that was forgotten
    /// never has an old turn again.
    pub(crate) fn end(&mut self, session: &str, number: u64) {
        self.ended.shift_remove(session);
        if self.ended.len() == SESSIONS {
            self.ended.shift_remove_index(0);
        }
        self.ended.insert(session.into(), number);
    }

    /// The session's turn; `None` if its host has ended none.
    pub(crate) fn of(&self, session: Option<&str>) -> Option<String> {
        let session = session?;
        self.ended.get(session).map(|number| format!("{session}#{number}"))
    }
}
