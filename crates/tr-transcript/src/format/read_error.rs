//! The error of a message that does not fit its format.
use std::fmt;

/// A message that does not fit its format.
#[derive(Debug)]
pub struct ReadError {
    what: &'static str,
    at: Option<usize>,
    source: Option<serde_json::Error>,
}

impl ReadError {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, at: None, source: None }
    }

    pub(crate) fn json(what: &'static str, source: serde_json::Error) -> Self {
        Self { what, at: None, source: Some(source) }
    }

    pub(crate) const fn at(mut self, message: usize) -> Self {
        self.at = Some(message);
        self
    }

    /// The index of the message that could not be read.
    #[must_use]
    pub const fn message_index(&self) -> Option<usize> {
        self.at
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "messages.{at}: ")?;
        }
        f.write_str(self.what)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
