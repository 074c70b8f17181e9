//! Validates the settings and reports all errors together.
use crate::{RetryConfig, config::MOST_ATTEMPTS};
use std::{error::Error, fmt, fmt::Display, time::Duration};

/// Settings are out of range; the text names each one, its value and the allowed range.
#[derive(Debug)]
pub struct ConfigError(String);

/// Collects errors to report them together.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<String>);

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Faults {
    pub(crate) fn check(&mut self, setting: &str, value: impl Display, holds: bool, allowed: &str) {
        if !holds {
            self.0.push(format!("`{setting}` is {value}, must be {allowed}"));
        }
    }

    /// Checks a configuration; `scope` prefixes the names of its settings.
    pub(crate) fn check_config(&mut self, scope: &str, config: &RetryConfig) {
        let mut check = |setting: &str, value: String, holds, allowed: &str| {
            self.check(&format!("{scope}{setting}"), value, holds, allowed);
        };
        let RetryConfig { attempts, base, multiplier, cap, jitter: (low, high), .. } = *config;
        let attempts_hold = (1..=MOST_ATTEMPTS).contains(&attempts);
        check("attempts", attempts.to_string(), attempts_hold, "1 to 1000");
        check("base", format!("{base:?}"), (MILLISECOND..=DAY).contains(&base), "1ms to 24h");
        let multiplier_holds = (1.0..=100.0).contains(&multiplier);
        check("multiplier", multiplier.to_string(), multiplier_holds, "1 to 100");
        if let Some(cap) = cap {
            check("cap", format!("{cap:?}"), cap >= base, "`base` or more");
        }
        let jitter_holds = 0.0 <= low && low <= high && high <= 10.0;
        check("jitter", format!("({low}, {high})"), jitter_holds, "0 to 10, the lower share first");
        if let Some(most) = config.max_elapsed {
            check("max_elapsed", format!("{most:?}"), most >= MILLISECOND, "1ms or more");
        }
        if let Some(codes) = &config.only_codes {
            let holds = !codes.is_empty() && codes.iter().all(|code| !code.is_empty());
            check(
                "only_codes",
                format!("{codes:?}"),
                holds,
                "one code or more, none of them empty",
            );
        }
    }

    pub(crate) fn into_result(self) -> Result<(), ConfigError> {
        if self.0.is_empty() { Ok(()) } else { Err(ConfigError(self.0.join("; "))) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid retry configuration: {}", self.0)
    }
}

impl Error for ConfigError {}
