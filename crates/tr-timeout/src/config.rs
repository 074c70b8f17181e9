//! The allowed durations.
use std::{ops::RangeInclusive, time::Duration};
use tr_core::ConfigError;

/// A timer cannot be shorter than a millisecond; a limit above a day has no use.
const ALLOWED: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

/// Accepts a duration within [`ALLOWED`].
pub(crate) fn check(setting: &str, value: Option<Duration>) -> Result<(), ConfigError> {
    let fault = value
        .filter(|value| !ALLOWED.contains(value))
        .map(|value| format!("`{setting}` is {value:?}, must be 1ms to 24h"));
    ConfigError::check("timeout", fault.into_iter().collect())
}
