//! Lines to write, each on a line of its own.
use bytes::BytesMut;

/// The lines to write to one side.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) bytes: BytesMut,
    /// Whether the last line has no newline: its sender ended in the middle of it.
    open: bool,
}

impl Out {
    /// Adds a line unchanged. An unfinished line before it gets its newline first.
    pub(crate) fn line(&mut self, line: &[u8]) {
        if self.open {
            self.bytes.extend_from_slice(b"\n");
        }
        self.part(line);
    }

    /// Adds a part of a line.
    pub(crate) fn part(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
        self.open = part.last().is_some_and(|last| *last != b'\n');
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}
