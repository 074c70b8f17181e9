//! Attempts that were given up, so that their late answers are recognised.
use super::{Owed, Token};
use std::collections::{HashMap, VecDeque};

/// How many abandoned attempts are remembered.
pub(super) const LATE: usize = 4096;

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
