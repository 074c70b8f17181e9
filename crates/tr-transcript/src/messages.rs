//! A list of messages that can be truncated in constant time.
use crate::message::Message;
use std::ops::Deref;

/// A list of messages.
///
/// Removed messages are freed by later pushes, two for each push: so truncation is constant-time,
/// and no push does much more work than another.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The messages, followed by removed ones that are not freed yet.
    all: Vec<Message>,
    len: usize,
}

impl Messages {
    pub(crate) fn push(&mut self, message: Message) {
        match self.all.get_mut(self.len) {
            Some(cut_off) => *cut_off = message,
            None => self.all.push(message),
        }
        self.len += 1;
        if self.all.len() > self.len {
            self.all.pop();
        }
    }

    /// Keeps the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Messages {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.all[..self.len]
    }
}

impl From<Vec<Message>> for Messages {
    fn from(all: Vec<Message>) -> Self {
        Self { len: all.len(), all }
    }
}

impl Clone for Messages {
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Messages {}

#[cfg(test)]
mod tests {
    use super::Messages;
    use crate::{format::Format, message::Message};
    use std::sync::Arc;

    fn message() -> Message {
        Format::AnthropicMessages.read(r#"{"role":"user","content":"hi"}"#).unwrap()
    }

    #[test]
    fn what_is_cut_off_is_gone_at_once_and_freed_with_what_comes() {
        let watched = message();
        let held = |by: usize| Arc::strong_count(&watched.body) == 1 + by;
        let mut messages = Messages::from(vec![watched.clone(); 8]);
        messages.truncate(2);
        assert_eq!((messages.len(), messages.clone().all.len()), (2, 2));
        assert!(messages == Messages::from(vec![watched.clone(); 2]) && held(8));
        for left in [6, 4, 2, 2] {
            messages.push(message());
            assert!(held(left), "{}", Arc::strong_count(&watched.body));
        }
        assert_eq!(messages.len(), 6);
        // Never more than there are.
        messages.truncate(9);
        assert_eq!(messages.len(), 6);
        drop(messages);
        assert!(held(0));
    }
}
