//! The error of a message that does not fit its format.

/// A message that does not fit its format.
#[derive(Debug, thiserror::Error)]
#[error("{}{what}", at.map_or_else(String::new, |at| format!("messages.{at}: ")))]
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
