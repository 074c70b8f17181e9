//! Splits an event stream into lines.
use super::{
    evidence::{Evidence, Word, append},
    walk::Walk,
};
use memchr::memchr2;
use std::mem;

/// Splits an event stream (`text/event-stream`) into lines, which end in `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    line: Line,
    word: Word,
    /// The last byte was `\r`: a following `\n` belongs to it.
    is_after_return: bool,
    /// Whether there was any data.
    pub(super) has_data: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// In the line's name.
    #[default]
    Name,
    /// In a `data` line.
    Data,
    /// In an `event` line.
    Event,
    /// In any other line.
    Other,
}

impl Lines {
    pub(super) fn push(&mut self, mut bytes: &[u8], walk: &mut Walk, evidence: &mut Evidence) {
        while let Some(&first) = bytes.first() {
            if mem::take(&mut self.is_after_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            self.part(&bytes[..end.unwrap_or(bytes.len())], walk, evidence);
            let Some(end) = end else { return };
            self.is_after_return = bytes[end] == b'\r';
            self.end_of_line(walk, evidence);
            bytes = &bytes[end + 1..];
        }
    }

    /// A part of a line.
    fn part(&mut self, mut part: &[u8], walk: &mut Walk, evidence: &mut Evidence) {
        while self.line == Line::Name {
            let Some((&byte, rest)) = part.split_first() else { return };
            part = rest;
            if byte != b':' {
                append(&mut self.word, [byte]);
                continue;
            }
            self.line = match &*self.word {
                b"data" => Line::Data,
                b"event" => Line::Event,
                _ => Line::Other,
            };
            self.word.clear();
        }
        match self.line {
            Line::Data => {
                walk.push(part, evidence);
                self.has_data |= walk.is_begun;
            }
            Line::Event => append(&mut self.word, part.iter().copied().filter(|it| *it != b' ')),
            Line::Name | Line::Other => {}
        }
    }

    fn end_of_line(&mut self, walk: &mut Walk, evidence: &mut Evidence) {
        match self.line {
            // Consecutive data lines form one text.
            Line::Data => walk.push(b"\n", evidence),
            Line::Event if *self.word == *b"error" => evidence.named_error(),
            Line::Name if self.word.is_empty() => {
                evidence.end_of_event();
                *walk = Walk::default();
            }
            _ => {}
        }
        self.line = Line::Name;
        self.word.clear();
    }
}
