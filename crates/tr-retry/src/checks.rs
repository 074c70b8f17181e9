//! Validates the settings and reports all errors together.
use std::fmt::Display;
use tr_policy::ConfigError;

/// Collects errors to report them together.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    pub(crate) fn check(&mut self, setting: &str, value: impl Display, holds: bool, allowed: &str) {
        if !holds {
            self.0.push(format!("`{setting}` is {value}, must be {allowed}"));
        }
    }

    pub(crate) fn into_result(self) -> Result<(), ConfigError> {
        ConfigError::check("retry", self.0)
    }
}
