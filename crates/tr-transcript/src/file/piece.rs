//! A piece of a file of JSON lines: a record, or bytes that belong to none.
use serde::Serialize;
use std::{borrow::Cow, fmt};

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'r> {
    /// A JSON value.
    Record(Record<'r>),
    /// Bytes that are no JSON value.
    Skipped(Skipped),
}

/// A JSON value in a file. [`Debug`](fmt::Debug) does not print its text, which may hold secrets.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'r> {
    /// Its text. Each run of invalid UTF-8, which is returned as skipped before it, is U+FFFD; each
    /// raw line break in a string, which is returned as skipped, too, is escaped.
    pub text: Cow<'r, str>,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How many bytes of the file it takes.
    pub length: u64,
    /// On which line, from 1: the first, if a line break divides it.
    pub line: u64,
    /// How many of these bytes are not UTF-8 or a raw line break, and were returned as skipped.
    pub invalid: u64,
    /// Whether it follows another record on its line.
    pub is_glued: bool,
}

/// Bytes of a file that belong to no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Where they begin.
    pub offset: u64,
    /// How many they are.
    pub length: u64,
    /// On which line, from 1.
    pub line: u64,
    /// Why they were skipped.
    pub why: SkipReason,
}

/// Why bytes were skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// Invalid JSON: a record that was not written completely, or bytes around one.
    Torn,
    /// A run of NUL bytes, as a crash leaves in a file.
    Nul,
    /// Not UTF-8.
    NotUtf8,
    /// A line longer than the limit.
    TooLong,
    /// A raw line break in a string, which divides a record between lines.
    LineBreak,
}

impl SkipReason {
    /// Whether nothing is lost with these bytes.
    #[must_use]
    pub const fn says_nothing(self) -> bool {
        matches!(self, Self::Nul | Self::LineBreak)
    }
}

impl Record<'_> {
    /// The same with a text of its own.
    pub(super) fn into_owned(self) -> Record<'static> {
        let Self { text, offset, length, line, invalid, is_glued } = self;
        Record { text: text.into_owned().into(), offset, length, line, invalid, is_glued }
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("offset", &self.offset)
            .field("length", &self.length)
            .field("line", &self.line)
            .field("is_glued", &self.is_glued)
            .finish_non_exhaustive()
    }
}
