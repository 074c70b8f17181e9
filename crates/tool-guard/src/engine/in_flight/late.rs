//! Attempts that were given up, so that their late answers are recognised.
use crate::{engine::unknowns::Equals, wire::jsonrpc::Token};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use tr_core::{FencingToken, ToolManifest, canonical::Key};

/// How many abandoned attempts are remembered.
pub(super) const LATE: usize = 4096;

/// A record's claim, under which a call runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) fence: FencingToken,
    pub(crate) in_store: bool,
    /// The record ends with its call.
    pub(crate) is_brief: bool,
}

/// The details of a given-up call, for the case that the server still answers it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owed {
    pub(crate) claim: Option<Claim>,
    /// The key by which it blocks equal calls.
    pub(crate) equals: Option<Equals>,
    /// The manifest with the codes by which the tool says that it did not run.
    pub(crate) codes: Option<Arc<ToolManifest>>,
}

/// The newest abandoned attempts, and the client's progress tokens among theirs.
#[derive(Debug, Default)]
pub(super) struct Late {
    pub(super) attempts: HashMap<Token, (Owed, bool)>,
    pub(super) order: VecDeque<Token>,
    pub(super) tokens: VecDeque<Token>,
}

impl Late {
    pub(super) fn remember(&mut self, wire_id: Token, owed: Owed, pass: bool) {
        if self.order.len() == LATE
            && let Some(oldest) = self.order.pop_front()
        {
            self.attempts.remove(&oldest);
        }
        self.order.push_back(wire_id.clone());
        self.attempts.insert(wire_id, (owed, pass));
    }

    pub(super) fn take(&mut self, wire_id: &Token) -> Option<(Owed, bool)> {
        let found = self.attempts.remove(wire_id)?;
        self.order.retain(|id| id != wire_id);
        Some(found)
    }

    pub(super) fn knows(&self, wire_id: &Token) -> bool {
        self.attempts.contains_key(wire_id)
    }

    pub(super) fn remember_token(&mut self, token: Option<Token>) {
        let Some(token) = token else { return };
        if self.tokens.len() == LATE / 64 {
            self.tokens.pop_front();
        }
        self.tokens.push_back(token);
    }

    pub(super) fn knows_token(&self, token: &Token) -> bool {
        self.tokens.contains(token)
    }
}

/// The calls in flight, by key.
#[derive(Debug, Default)]
pub(super) struct Groups(HashMap<Key, Group>);

#[derive(Debug, Default)]
struct Group {
    /// The calls that have not ended.
    open: usize,
    /// Of these, the calls that their clients have not cancelled.
    wanted: usize,
    /// The client's id of the call that sent the last attempt, which may have ended; `None` before the first.
    running: Option<Token>,
}

impl Groups {
    pub(super) fn join(&mut self, key: Key) {
        let group = self.0.entry(key).or_default();
        group.open += 1;
        group.wanted += 1;
    }

    pub(super) fn run(&mut self, key: &Key, id: &Token) {
        if let Some(group) = self.0.get_mut(key) {
            group.running = Some(id.clone());
        }
    }

    /// Counts a client's cancellation. Returns the call to cancel at the server, or `None` while another caller
    /// waits for the same end.
    pub(super) fn unwant(&mut self, key: &Key, id: &Token, was_wanted: bool) -> Option<Token> {
        let Some(group) = self.0.get_mut(key) else { return Some(id.clone()) };
        group.wanted = group.wanted.saturating_sub(usize::from(was_wanted));
        (group.wanted == 0).then(|| group.running.clone().unwrap_or_else(|| id.clone()))
    }

    pub(super) fn is_unwanted(&self, key: &Key) -> bool {
        self.0.get(key).is_some_and(|group| group.wanted == 0)
    }

    pub(super) fn leave(&mut self, key: &Key, was_wanted: bool) {
        let Some(group) = self.0.get_mut(key) else { return };
        group.open -= 1;
        group.wanted = group.wanted.saturating_sub(usize::from(was_wanted));
        if group.open == 0 {
            self.0.remove(key);
        }
    }
}
