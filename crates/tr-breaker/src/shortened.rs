//! The message of the last failure, shortened.
use std::{
    fmt::{self, Display, Write},
    sync::Arc,
};
use tr_policy::internal::floor_char_boundary;

/// The message of the last failed call, possibly of another caller.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct LastFailure(pub(crate) Arc<str>);

impl LastFailure {
    /// That of this message, shortened.
    pub(crate) fn of(message: &impl Display) -> Arc<Self> {
        Arc::new(Self(shortened(message)))
    }
}

/// Bytes that are kept of a message.
const MOST: usize = 256;

/// The beginning of `message`, at most 256 bytes of it.
pub(crate) fn shortened(message: &dyn Display) -> Arc<str> {
    let mut truncated = Truncated(String::new());
    // What is written past the end, or after the message's own error, is not missed.
    let _ = write!(truncated, "{message}");
    truncated.0.into()
}

struct Truncated(String);

impl Write for Truncated {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MOST - self.0.len();
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..floor_char_boundary(text, room)]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let long = "é".repeat(300);
        assert_eq!(&*shortened(&long), "é".repeat(128));
        assert_eq!(&*shortened(&format!("x{long}")), format!("x{}", "é".repeat(127)));
        assert_eq!(&*shortened(&"short"), "short");
    }
}
