//! The faults of a builder's settings, reported together.
use crate::ConfigError;
use std::{
    fmt::{Debug, Display},
    ops::RangeInclusive,
};

/// The faults found so far.
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    /// A fault in words of its own.
    pub fn push(&mut self, fault: impl Into<String>) {
        self.0.push(fault.into());
    }

    /// The value of a setting, which `holds`, or is not what is allowed.
    pub fn check(
        &mut self,
        setting: impl Display,
        value: impl Display,
        holds: bool,
        allowed: impl Display,
    ) {
        if !holds {
            self.push(format!("`{setting}` is {value}, must be {allowed}"));
        }
    }

    /// The value of a setting that must be in a range.
    pub fn range<T: PartialOrd + Debug + Copy>(
        &mut self,
        setting: impl Display,
        value: T,
        allowed: RangeInclusive<T>,
    ) {
        let (least, most) = (allowed.start(), allowed.end());
        let (holds, allowed) = (allowed.contains(&value), format_args!("{least:?} to {most:?}"));
        self.check(setting, format_args!("{value:?}"), holds, allowed);
    }

    /// Fails if there are any; `of` says what is configured.
    ///
    /// # Errors
    /// If a fault was found.
    pub fn into_result(self, of: &'static str) -> Result<(), ConfigError> {
        ConfigError::check(of, self.0)
    }
}
