//! Finds records that share their line with other bytes: an agent parses a line as a whole, so it
//! cannot read such a record.
use super::records::{Record, Skipped};

/// The line that is being read.
#[derive(Debug, Default)]
pub(super) struct SharedLine {
    line: u64,
    /// Start and end of its last record.
    record: Option<(u64, u64)>,
    /// The start of its first bytes that are no record.
    skipped: Option<u64>,
    is_told: bool,
}

impl SharedLine {
    /// Takes a record; returns its start if it is the first that shares its line with other bytes.
    pub(super) fn record(&mut self, record: &Record<'_>) -> Option<u64> {
        self.turn_to(record.line);
        self.record = Some((record.offset, record.offset + record.length));
        // A record after another one is reported as `Glued`.
        self.is_told |= record.is_glued;
        self.found()
    }

    /// Takes bytes that are no record; returns the same.
    pub(super) fn skipped(&mut self, skipped: &Skipped) -> Option<u64> {
        self.turn_to(skipped.line);
        self.skipped = Some(self.skipped.map_or(skipped.offset, |first| first.min(skipped.offset)));
        let is_behind = self.record.is_some_and(|(_, end)| skipped.offset >= end);
        if is_behind { self.tell() } else { None }
    }

    fn turn_to(&mut self, line: u64) {
        if self.line != line {
            *self = Self { line, ..Self::default() };
        }
    }

    /// Bytes inside a record belong to its texts and do not make it unreadable.
    fn found(&mut self) -> Option<u64> {
        let (start, _) = self.record?;
        if self.skipped.is_some_and(|first| first < start) { self.tell() } else { None }
    }

    fn tell(&mut self) -> Option<u64> {
        let (start, _) = self.record?;
        (!std::mem::replace(&mut self.is_told, true)).then_some(start)
    }
}
