//! Records that do not have their line for themselves: an agent parses a line as a whole, so bytes
//! beside a record cost it the record, too.
use super::records::{Record, Skipped};

/// The line that is being read, as far as it goes.
#[derive(Debug, Default)]
pub(super) struct SharedLine {
    line: u64,
    /// Where its last record begins and ends.
    record: Option<(u64, u64)>,
    /// Where bytes began that are no record.
    skipped: Option<u64>,
    is_told: bool,
}

impl SharedLine {
    /// Takes a record; says where it begins, if it is the first of a line that has other bytes.
    pub(super) fn record(&mut self, record: &Record<'_>) -> Option<u64> {
        self.turn_to(record.line);
        self.record = Some((record.offset, record.offset + record.length));
        // One behind another record is told as such.
        self.is_told |= record.is_glued;
        self.found()
    }

    /// Takes bytes that are no record, and says the same.
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

    /// Bytes within a record are of its texts: those do not cost it.
    fn found(&mut self) -> Option<u64> {
        let (start, _) = self.record?;
        if self.skipped.is_some_and(|first| first < start) { self.tell() } else { None }
    }

    fn tell(&mut self) -> Option<u64> {
        let (start, _) = self.record?;
        (!std::mem::replace(&mut self.is_told, true)).then_some(start)
    }
}
