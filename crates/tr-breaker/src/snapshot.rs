//! What breakers know, to be kept somewhere and given back.
use crate::settings::Mode;

/// What the breakers of a registry know, with wall times, so that it can outlive the process.
///
/// Breakers that know of nothing but successes are not in it, nor are probes in flight and ramps,
/// nor what the settings alone have decided: after a restart the settings of then apply.
/// With the feature `serde` it can be serialised; what it looks like then is no promise between
/// versions of this crate.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Snapshot {
    pub(crate) breakers: Vec<Saved>,
}

/// What one breaker knows.
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

/// The last calls, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedWindow {
    pub(crate) marks: Vec<SavedMark>,
    /// Failures in a row, up to the last call.
    pub(crate) run: u32,
}

/// A call that failed or was slow, or neither: then it stands for the successes that follow.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedMark {
    pub(crate) at: u64,
    pub(crate) failed: bool,
    pub(crate) slow: bool,
    /// Successes between it and the next.
    pub(crate) successes: u64,
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
