//! What processes decide about a breaker, and can share.
use crate::settings::Mode;
use std::time::Duration;

/// A decision about a breaker, by a process or an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) state: State,
    /// The mode that an operator set; `None`: as configured.
    pub(crate) order: Option<Mode>,
}

/// A state that is decided. Half open is none: it follows from the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Closed,
    /// Until it is half open.
    Open {
        left: Duration,
    },
    Forced,
}

/// A circuit, as it has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) generation: u32,
    pub(crate) mode: Mode,
    /// `None` while it is half open: each process probes for itself.
    pub(crate) state: Option<State>,
    pub(crate) configured: Mode,
    /// The mode, where it is not the one that was configured.
    pub(crate) order: Option<Mode>,
    /// Its state and its mode are those of a new one.
    pub(crate) is_as_configured: bool,
}

impl Decision {
    /// Whether it holds until it is revoked.
    pub(crate) const fn is_standing(&self) -> bool {
        matches!(self.state, State::Forced) || self.order.is_some()
    }

    /// Whether a new breaker does not do so by itself.
    pub(crate) fn is_news(&self) -> bool {
        self.is_standing() || self.state != State::Closed
    }

    /// The same that much later.
    pub(crate) fn after(mut self, passed: Duration) -> Self {
        if let State::Open { left } = &mut self.state {
            *left = left.saturating_sub(passed);
        }
        self
    }
}
