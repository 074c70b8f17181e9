//! Finds records that share their line with other bytes: an agent parses a line as a whole, so it
//! cannot read such a record. `FileCheck` (`check.rs`) reports them as `FileFault::SharedLine`.
use super::records::{Record, Skipped};

/// The line that is being read.
#[derive(Debug, Default)]
pub(super) struct SharedLine {
    line: u64,
    /// Start and end of its last record.
    record: Option<(u64, u64)>,
    /// The start of its first bytes that are no record.
    skipped: Option<u64>,
    is_reported: bool,
}

impl SharedLine {
    /// Takes a record; returns its start if it is the first that shares its line with other bytes.
    pub(super) fn on_record(&mut self, record: &Record<'_>) -> Option<u64> {
        self.start_line(record.line);
        self.record = Some((record.offset, record.offset + record.length));
        // A record after another one is reported as `Glued`.
        self.is_reported |= record.is_glued;
        self.skipped_before()
    }

    /// Takes bytes that are no record; returns the start of the last record if they come behind it
    /// and it is not reported yet.
    pub(super) fn on_skipped(&mut self, skipped: &Skipped) -> Option<u64> {
        self.start_line(skipped.line);
        self.skipped = Some(self.skipped.map_or(skipped.offset, |first| first.min(skipped.offset)));
        let is_behind = self.record.is_some_and(|(_, end)| skipped.offset >= end);
        if is_behind { self.report_once() } else { None }
    }

    fn start_line(&mut self, line: u64) {
        if self.line != line {
            *self = Self { line, ..Self::default() };
        }
    }

    /// Reports the record if skipped bytes come before it. Invalid UTF-8 inside a record does not
    /// count: it belongs to its texts.
    fn skipped_before(&mut self) -> Option<u64> {
        let (start, _) = self.record?;
        if self.skipped.is_some_and(|first| first < start) { self.report_once() } else { None }
    }

    /// The start of the record, once.
    fn report_once(&mut self) -> Option<u64> {
        let (start, _) = self.record?;
        (!std::mem::replace(&mut self.is_reported, true)).then_some(start)
    }
}
