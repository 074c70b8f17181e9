//! The builder's sessions, and what is wrong with those of a configuration.
use super::Builder;
use tr_core::ConfigError;
use tr_integrity::{Sessions, WhenStoreFails};

impl Builder {
    /// Records the tool cycles of these sessions; none by default. A user's message that is pushed
    /// to one of them begins a turn for the loop guard, where calls do not name their turn. The
    /// stack's observers hear what is done when one of them is loaded.
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Sets what to do with a call whose intent the store of [`sessions`](Self::sessions) does not
    /// record; it is refused by default.
    pub const fn when_sessions_fail(mut self, when: WhenStoreFails) -> Self {
        self.when_sessions_fail = when;
        self
    }

    /// Adds what is wrong with a configuration; [`build`](Self::build) reports it with the rest.
    pub(crate) fn fault(mut self, error: ConfigError) -> Self {
        self.faults.add(error);
        self
    }
}
