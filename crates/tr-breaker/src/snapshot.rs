//! The saved state of breakers.
use crate::{settings::Mode, window::SavedWindow};

/// The saved state of the breakers of a registry, with wall times, so that it can outlive the process.
///
/// It leaves out breakers without failures, probes in flight, ramps, and states that only the settings
/// force: after a restart the settings of then apply.
/// With the feature `serde` it can be serialized; the format may change between versions of
/// this crate.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Snapshot {
    pub(crate) breakers: Vec<Saved>,
}

/// The state of one breaker.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Saved {
    pub(crate) name: String,
    /// The mode, if an operator set another one than the settings.
    pub(crate) order: Option<Mode>,
    pub(crate) state: SavedState,
    pub(crate) window: SavedWindow,
    pub(crate) last_failure: Option<String>,
}

/// A state; times in milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "SCREAMING_SNAKE_CASE"))]
pub(crate) enum SavedState {
    Closed,
    Open { until: u64 },
    HalfOpen { successes: u32 },
    ForcedOpen,
}

impl Snapshot {
    /// How many breakers are in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.breakers.len()
    }

    /// Whether no breaker is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.breakers.is_empty()
    }
}
