//! Calls with the same key: one of them runs, and the others wait for its end.
use super::Token;
use std::collections::HashMap;
use tr_core::canonical::Key;

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
