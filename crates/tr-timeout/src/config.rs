//! What a configuration can get wrong.
use std::{error::Error, fmt, ops::RangeInclusive, time::Duration};

/// Shorter than a millisecond no timer can be; what is longer than a day bounds nothing.
const ALLOWED: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

/// A setting is out of its range; the text names it, its value and what is allowed.
#[derive(Debug)]
pub struct ConfigError(String);

/// Passes a duration that a timer can keep.
pub(crate) fn check(setting: &str, value: Option<Duration>) -> Result<(), ConfigError> {
    match value {
        Some(value) if !ALLOWED.contains(&value) => {
            Err(ConfigError(format!("`{setting}` is {value:?}, allowed is 1ms to 24h")))
        }
        _ => Ok(()),
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ConfigError {}
