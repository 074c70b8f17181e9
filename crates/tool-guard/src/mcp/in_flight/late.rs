//! Attempts that were given up, so that their late answers are recognised.
use crate::mcp::{message::Token, unknowns::Equals};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use tr_core::{FencingToken, ToolManifest};

/// How many abandoned attempts are remembered.
pub(super) const LATE: usize = 4096;

/// A record's claim, under which a call runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(in crate::mcp) fence: FencingToken,
    pub(in crate::mcp) in_store: bool,
    /// The record ends with its call.
    pub(in crate::mcp) is_brief: bool,
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
