//! The validator's state for checking members.
use crate::message::Role;

/// The validator's state for checking members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members {
    /// Whether the form's own provider is asked: others may have other limits.
    pub(super) has_limits: bool,
    /// The last message, if it is the model's and empty: no other message may follow it.
    pub(super) empty: Option<usize>,
    /// The number of messages if consecutive tool results are merged into one message, and the
    /// number of results before the last one in its message.
    pub(super) sent: usize,
    pub(super) results: usize,
}

impl Default for Members {
    fn default() -> Self {
        Self { has_limits: true, empty: None, sent: 0, results: 0 }
    }
}

impl Members {
    /// The same settings before the first message.
    pub(super) fn fresh(self) -> Self {
        Self { has_limits: self.has_limits, ..Self::default() }
    }

    /// Counts the next message.
    pub(super) fn count(&mut self, role: Role, last: Option<Role>) {
        let is_more = role == Role::Tool && last == Some(Role::Tool);
        self.sent += usize::from(!is_more);
        self.results = if is_more { self.results + 1 } else { 0 };
    }

    pub(super) fn first_waiting(&self) -> Option<usize> {
        self.empty
    }
}
