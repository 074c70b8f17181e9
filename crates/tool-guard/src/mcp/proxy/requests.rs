//! The client's open requests that are no tool calls.
use crate::mcp::message::{self, Token};
use bytes::Bytes;
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

/// More requests than clients leave open. For requests beyond, the end of the server is not reported, no
/// list of tools is read, and those that need another id are refused.
pub(super) const MAX_REQUESTS: usize = 65_536;

/// The open requests, by the id on the wire.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: HashMap<Token, Open>,
    /// Those for whose answers the client does not wait: it cancelled them, or they last.
    unawaited: HashSet<Token>,
}

/// A request that the server has not answered.
#[derive(Debug)]
pub(super) struct Open {
    /// Whether it asks for the list of tools.
    pub(super) is_list: bool,
    /// The client's id and its JSON text, if it is not the id on the wire.
    pub(super) client: Option<(Token, Box<str>)>,
}

impl Open {
    /// The answer of the server's, with its id at `place`, as the client gets it.
    pub(super) fn answer(&self, line: &Bytes, place: Range<usize>) -> Bytes {
        match &self.client {
            Some((_, text)) => message::splice(line, &[(place, text)]),
            None => line.clone(),
        }
    }

    /// The client's id as JSON text, if it is not the id on the wire.
    pub(super) fn client_id(&self) -> Option<&str> {
        self.client.as_ref().map(|(_, text)| &**text)
    }
}

impl Requests {
    /// Whether the client waits for an answer.
    pub(super) fn are_awaited(&self) -> bool {
        self.open.len() > self.unawaited.len()
    }

    /// The client does not wait for the answer to its request `id`.
    pub(super) fn unawait(&mut self, id: &Token) {
        let wire_id = self.renamed(id).cloned().unwrap_or_else(|| id.clone());
        if self.contains(&wire_id) {
            self.unawaited.insert(wire_id);
        }
    }

    /// All of them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (Token, Open)> {
        self.unawaited.clear();
        std::mem::take(&mut self.open).into_iter()
    }

    pub(super) fn contains(&self, wire_id: &Token) -> bool {
        self.open.contains_key(wire_id)
    }

    pub(super) fn take(&mut self, wire_id: &Token) -> Option<Open> {
        self.unawaited.remove(wire_id);
        self.open.remove(wire_id)
    }

    /// How many more are remembered.
    pub(super) fn room(&self) -> usize {
        MAX_REQUESTS.saturating_sub(self.open.len())
    }

    /// The id on the wire of the client's request `id`, if it is another.
    pub(super) fn renamed(&self, id: &Token) -> Option<&Token> {
        let is_it = |open: &Open| open.client.as_ref().is_some_and(|(client, _)| client == id);
        self.open.iter().find(|(_, open)| is_it(open)).map(|(wire_id, _)| wire_id)
    }

    pub(super) fn insert(&mut self, wire_id: Token, open: Open) {
        if open.client.is_some() || self.room() > 0 {
            self.unawaited.remove(&wire_id);
            self.open.insert(wire_id, open);
        }
    }
}
