//! Lines to write, each on a line of its own.
use super::{message::Token, unwritten::Unwritten};
use bytes::Bytes;
use std::collections::VecDeque;

/// The lines to write to one side.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) bytes: Unwritten,
    /// Whether the last line has no newline: its sender ended in the middle of it.
    open: bool,
    /// The messages one by one, where they do not travel as lines.
    messages: Option<VecDeque<Outgoing>>,
}

/// A message for one side.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) line: Bytes,
    /// The attempt of a call that it begins.
    pub(crate) attempt: Option<Sent>,
}

/// An attempt that is sent to the server.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The id of its answer.
    pub(crate) id: Token,
    /// Whether it may change something.
    pub(crate) is_mutating: bool,
    /// Whether its tool is declared as one that may be cancelled nevertheless.
    pub(crate) is_cancellable: bool,
}

impl Sent {
    /// Whether it goes on although its stream ends. Without sessions it is the end of the stream that cancels.
    pub(crate) const fn outlives_stream(&self, is_modern: bool) -> bool {
        self.is_mutating && !(is_modern && self.is_cancellable)
    }
}

impl Out {
    /// Keeps messages apart.
    pub(crate) fn apart() -> Self {
        Self { messages: Some(VecDeque::new()), ..Self::default() }
    }

    /// Adds a line unchanged. An unfinished line before it gets its newline first.
    pub(crate) fn line(&mut self, line: &[u8]) {
        if let Some(messages) = &mut self.messages {
            let line = Bytes::copy_from_slice(line);
            return messages.push_back(Outgoing { line, attempt: None });
        }
        self.end_line();
        self.part(line);
    }

    fn end_line(&mut self) {
        if self.open {
            self.bytes.copy(b"\n");
        }
    }

    /// Adds a line that nothing else needs.
    pub(crate) fn owned(&mut self, line: Bytes) {
        self.message(Outgoing { line, attempt: None });
    }

    /// Adds a line before all others.
    pub(crate) fn first(&mut self, line: &[u8]) {
        self.bytes.put_first(Bytes::copy_from_slice(line));
    }

    /// Adds a message, or its line.
    pub(crate) fn message(&mut self, message: Outgoing) {
        match &mut self.messages {
            Some(messages) => messages.push_back(message),
            None => {
                self.end_line();
                self.open = is_open(&message.line);
                self.bytes.push(message.line);
            }
        }
    }

    /// Takes the first message, of those that are kept apart.
    pub(crate) fn next(&mut self) -> Option<Outgoing> {
        self.messages.as_mut()?.pop_front()
    }

    /// Adds a part of a line.
    pub(crate) fn part(&mut self, part: &[u8]) {
        self.bytes.copy(part);
        self.open = is_open(part);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.messages.as_ref().is_none_or(VecDeque::is_empty)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes all that was to be written.
    #[cfg(test)]
    pub(crate) fn written(&mut self) -> Vec<u8> {
        let len = self.len();
        bytes::Buf::copy_to_bytes(&mut self.bytes, len).into()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        if let Some(messages) = &mut self.messages {
            messages.clear();
        }
    }
}

fn is_open(part: &[u8]) -> bool {
    part.last().is_some_and(|last| *last != b'\n')
}
