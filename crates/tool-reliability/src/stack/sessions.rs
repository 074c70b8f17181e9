//! The builder's sessions, and what is wrong with those of a configuration.
use super::Builder;
use tr_core::{ConfigError, setters};
use tr_integrity::{Sessions, WhenStoreFails};

impl Builder {
    setters! {
        /// Records the tool cycles of these sessions; none by default. A user's message that is pushed
        /// to one of them begins a turn for the loop guard, where calls do not name their turn. The
        /// stack's observers hear what is done when one of them is loaded.
        fn sessions(sessions: Sessions) { sessions = Some(sessions) }

        /// Sets what to do with a call whose intent the store of [`sessions`](Self::sessions) does not
        /// record; it is refused by default.
        fn when_sessions_fail(when: WhenStoreFails) { when_sessions_fail = when }
    }

    /// What a configuration describes, or `None`: [`build`](Self::build) reports what is wrong with the rest.
    pub(crate) fn built<T>(&mut self, built: Result<T, ConfigError>) -> Option<T> {
        self.faults.gather(built)
    }
}
