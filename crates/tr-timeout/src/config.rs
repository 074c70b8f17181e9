//! The allowed durations, and the error for others.
use std::{error::Error, fmt, ops::RangeInclusive, time::Duration};

/// A timer cannot be shorter than a millisecond; a limit above a day has no use.
const ALLOWED: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

/// A setting is out of range; the text names it, its value and the allowed range.
#[derive(Debug)]
pub struct ConfigError(String);

/// Accepts a duration within [`ALLOWED`].
pub(crate) fn check(setting: &str, value: Option<Duration>) -> Result<(), ConfigError> {
    match value {
        Some(value) if !ALLOWED.contains(&value) => {
            Err(ConfigError(format!("`{setting}` is {value:?}, must be 1ms to 24h")))
        }
        _ => Ok(()),
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid timeout configuration: {}", self.0)
    }
}

impl Error for ConfigError {}
