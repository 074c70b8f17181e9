//! The allowed durations.
use std::{ops::RangeInclusive, time::Duration};
use tr_core::ConfigError;

/// A timer cannot be shorter than a millisecond; a limit above a day has no use.
const ALLOWED: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

/// Accepts durations within [`ALLOWED`].
pub(crate) fn check<const N: usize>(
    settings: [(&str, Option<Duration>); N],
) -> Result<(), ConfigError> {
    let faults = settings.into_iter().filter_map(|(setting, value)| {
        let value = value.filter(|value| !ALLOWED.contains(value))?;
        Some(format!("`{setting}` is {value:?}, must be 1ms to 24h"))
    });
    ConfigError::check("timeout", faults.collect())
}
