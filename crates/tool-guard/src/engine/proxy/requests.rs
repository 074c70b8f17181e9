//! The client's open requests that are no tool calls.
use crate::{
    engine::{answer, in_flight::Relay},
    wire::{
        jsonrpc::{self, INVALID_REQUEST, Token},
        lines::Oversized,
    },
};
use bytes::Bytes;
use std::{collections::HashMap, ops::Range};

/// More requests than clients leave open. For requests beyond, the end of the server is not reported, no
/// list of tools is read, and those that need another id are refused.
pub(super) const MAX_REQUESTS: usize = 65_536;

/// The open requests, by the id on the wire.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) open: HashMap<Token, Open>,
}

/// A request that the server has not answered.
#[derive(Debug)]
pub(super) struct Open {
    /// Whether it asks for the list of tools.
    pub(super) is_list: bool,
    /// The client's id and its JSON text, if it is not the id on the wire.
    pub(super) client: Option<(Token, Box<str>)>,
    /// Whether the client waits for the answer: it has not cancelled the request, and the request does not last.
    is_awaited: bool,
}

impl Open {
    pub(super) const fn new(is_list: bool, client: Option<(Token, Box<str>)>) -> Self {
        Self { is_list, client, is_awaited: true }
    }

    /// The answer of the server's, with its id at `place`, as the client gets it.
    pub(super) fn answer(&self, line: &Bytes, place: Range<usize>) -> Bytes {
        match &self.client {
            Some((_, text)) => jsonrpc::splice(line, &[(place, text)]),
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
        self.open.values().any(|open| open.is_awaited)
    }

    /// The client does not wait for the answer to its request `id`.
    pub(super) fn unawait(&mut self, id: &Token) {
        let wire_id = self.renamed(id).cloned().unwrap_or_else(|| id.clone());
        if let Some(open) = self.open.get_mut(&wire_id) {
            open.is_awaited = false;
        }
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
            self.open.insert(wire_id, open);
        }
    }
}

/// The answer to a request after the server has ended, in the words of MCP's own clients.
pub(super) const CONNECTION_CLOSED: i64 = -32000;
pub(super) const CLOSED: &str = "Connection closed: the MCP server has ended";
/// A request beyond the most that may be in flight.
pub(super) const OVERLOADED: i64 = -32000;

/// The line changed by `relay`, `None` if it is discarded.
pub(super) fn relayed(
    line: &Bytes,
    part: Option<&serde_json::value::RawValue>,
    relay: &Relay,
) -> Option<Bytes> {
    match (relay, part) {
        (Relay::With(text), Some(raw)) => {
            Some(jsonrpc::splice(line, &[(jsonrpc::range(line, raw), text)]))
        }
        (Relay::Discarded, _) => None,
        _ => Some(line.clone()),
    }
}

/// The error for a sender whose line, or whose answer, was too long.
pub(crate) fn too_long(line: &Oversized, id: Option<&str>) -> Bytes {
    let what = if line.asks { "line" } else { "answer" };
    let text =
        format!("the {what} has {} bytes, and was not forwarded: raise --max-line", line.bytes);
    answer::refusal(id.unwrap_or("null"), INVALID_REQUEST, &text)
}
