//! What [`Validator::with_members`](super::Validator::with_members) remembers from message to message.
use crate::message::Role;

/// The state of the checks that do not depend on how calls and results are paired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members {
    /// Whether limits of length are checked: the transcript goes to the form's own provider.
    pub(super) has_limits: bool,
    /// The last message, if it is the model's and empty: no other message may follow it.
    pub(super) empty: Option<usize>,
    /// The number of messages as they are sent: consecutive tool results are one message.
    pub(super) sent: usize,
    /// The number of results before the last one in its sent message.
    pub(super) results: usize,
}

impl Members {
    /// The state before the first message.
    pub(super) const fn new(has_limits: bool) -> Self {
        Self { has_limits, empty: None, sent: 0, results: 0 }
    }

    /// Counts the next message.
    pub(super) fn count(&mut self, role: Role, last: Option<Role>) {
        let is_more = role == Role::Tool && last == Some(Role::Tool);
        self.sent += usize::from(!is_more);
        self.results = if is_more { self.results + 1 } else { 0 };
    }
}
