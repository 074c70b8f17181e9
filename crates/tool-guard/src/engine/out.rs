//! Lines to write, each on a line of its own, as bytes that wait in their order.
use crate::wire::jsonrpc::Token;
use bytes::{Buf, Bytes, BytesMut};
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
    /// The tool, if it is the guard's own call.
    pub(crate) asks: Option<Box<str>>,
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
        !self.bytes.has_remaining() && self.messages.as_ref().is_none_or(VecDeque::is_empty)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.remaining()
    }

    /// Takes all that was to be written.
    #[cfg(test)]
    pub(crate) fn written(&mut self) -> Vec<u8> {
        let len = self.len();
        self.bytes.copy_to_bytes(len).into()
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

/// A piece of this length is not copied.
const LONG: usize = 64 * 1024;

/// Bytes that wait to be written, in their order.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    /// Those before `last`; none is empty.
    pieces: VecDeque<Bytes>,
    last: BytesMut,
    /// How many bytes `pieces` have.
    before: usize,
}

impl Unwritten {
    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        self.last.extend_from_slice(bytes);
    }

    pub(crate) fn push(&mut self, bytes: Bytes) {
        if bytes.len() < LONG {
            return self.copy(&bytes);
        }
        let short = self.last.split().freeze();
        for piece in [short, bytes].into_iter().filter(|piece| !piece.is_empty()) {
            self.before += piece.len();
            self.pieces.push_back(piece);
        }
    }

    pub(crate) fn put_first(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.before += bytes.len();
            self.pieces.push_front(bytes);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.before = 0;
        self.last.clear();
    }
}

impl Buf for Unwritten {
    fn remaining(&self) -> usize {
        self.before + self.last.len()
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&self.last[..], |piece| &piece[..])
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            let here = count.min(piece.len());
            piece.advance(here);
            (self.before, count) = (self.before - here, count - here);
            if !piece.is_empty() {
                return;
            }
            self.pieces.pop_front();
        }
        self.last.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_come_out_in_their_order(
            steps in prop::collection::vec((0_u8..4, 0_usize..5, 0_usize..LONG * 2), 1..30),
        ) {
            let (mut unwritten, mut model) = (Unwritten::default(), VecDeque::new());
            for (number, (kind, of_long, count)) in steps.into_iter().enumerate() {
                let bytes = vec![number as u8; if of_long == 0 { LONG + count } else { count % 50 }];
                match kind {
                    0 => {
                        unwritten.copy(&bytes);
                        model.extend(bytes);
                    }
                    1 => {
                        model.extend(&bytes);
                        unwritten.push(bytes.into());
                    }
                    2 => {
                        bytes.iter().rev().for_each(|byte| model.push_front(*byte));
                        unwritten.put_first(bytes.into());
                    }
                    _ => {
                        let written = count.min(model.len());
                        prop_assert_eq!(unwritten.chunk().is_empty(), model.is_empty());
                        unwritten.advance(written);
                        model.drain(..written);
                    }
                }
                prop_assert_eq!(unwritten.remaining(), model.len());
                prop_assert_eq!(unwritten.has_remaining(), !model.is_empty());
            }
            prop_assert_eq!(&unwritten.copy_to_bytes(model.len())[..], &*model.make_contiguous());
        }
    }

    #[test]
    fn long_pieces_are_not_copied() {
        let long = Bytes::from(vec![7; LONG]);
        let mut unwritten = Unwritten::default();
        unwritten.copy(b"a");
        unwritten.push(long.clone());
        unwritten.advance(1);
        assert_eq!(unwritten.chunk().as_ptr(), long.as_ptr());
    }
}
