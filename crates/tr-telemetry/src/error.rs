//! Error types.
use std::{error::Error, fmt};

/// Settings are out of range; the text names all of them.
#[derive(Debug)]
pub struct ConfigError {
    faults: Vec<String>,
}

impl ConfigError {
    pub(crate) fn new(faults: Vec<String>) -> Self {
        Self { faults }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid telemetry configuration: {}", self.faults.join("; "))
    }
}

impl Error for ConfigError {}
