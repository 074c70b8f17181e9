//! What breakers of one layer have in common.
use crate::{hub::Hub, settings::Settings};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// What breakers of one layer have in common: one word in each of them.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) settings: Arc<Settings>,
    pub(crate) hub: Arc<Hub>,
    /// From when on times are told in words.
    zero: Instant,
    /// No rule asks how old a success is, or how long it took.
    pub(crate) is_timeless: bool,
    /// Some rule asks how long calls take.
    pub(crate) times_calls: bool,
}

impl Ground {
    pub(crate) fn new(settings: Settings, hub: Arc<Hub>, zero: Instant) -> Self {
        let (is_timeless, times_calls) = (settings.is_timeless(), settings.slow.is_some());
        Self { settings: Arc::new(settings), hub, zero, is_timeless, times_calls }
    }

    /// The same for other settings.
    pub(crate) fn with(&self, settings: Settings) -> Self {
        Self::new(settings, self.hub.clone(), self.zero)
    }

    /// The time in a word.
    #[inline]
    pub(crate) fn nanos(&self, at: Instant) -> u64 {
        let age = at.saturating_duration_since(self.zero);
        age.as_secs().wrapping_mul(1_000_000_000).wrapping_add(age.subsec_nanos().into())
    }

    /// The time that a word tells.
    pub(crate) fn instant(&self, nanos: u64) -> Instant {
        self.zero + Duration::from_nanos(nanos)
    }
}
