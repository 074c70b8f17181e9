//! What shares a line: decides whether a file is a session by counting lines that are records of its
//! form, and finds records that share their line with other bytes. An agent parses a line as a whole,
//! so it cannot read such a record; `FileCheck` (`check.rs`) reports it as `FileFault::SharedLine`.
use super::records::{Record, SkipReason, Skipped};
use std::mem;

/// How many lines are records of the file's form, of something else, or torn. A record that shares
/// its line with other bytes does not count: many files contain JSON.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    own: u64,
    other: u64,
    torn: u64,
    /// The line that is being read, which is not counted yet.
    line: Line,
}

/// The line that is being read.
#[derive(Debug, Default)]
struct Line {
    number: u64,
    /// How many of its records are of the form or not.
    own: u64,
    other: u64,
    is_torn: bool,
    /// Start and end of its last record.
    record: Option<(u64, u64)>,
    /// The start of its first bytes that are no record.
    skipped: Option<u64>,
    is_reported: bool,
}

impl Evidence {
    /// Takes bytes that are no record; returns the start of the last record if they come behind it
    /// and it is not reported yet.
    pub(super) fn skipped(&mut self, skipped: &Skipped) -> Option<u64> {
        let line = self.line(skipped.line);
        line.is_torn |= skipped.why != SkipReason::Nul;
        line.skipped = Some(line.skipped.map_or(skipped.offset, |first| first.min(skipped.offset)));
        let (start, end) = line.record?;
        (skipped.offset >= end).then(|| line.report_once(start))?
    }

    /// Takes a record; returns its start if it is the first that shares its line with other bytes.
    /// `is_own` says whether it is of the form.
    pub(super) fn record(&mut self, record: &Record<'_>, is_own: bool) -> Option<u64> {
        let line = self.line(record.line);
        // A line with a record whose bytes are not all UTF-8 is not torn for that: they belong to
        // its texts.
        line.is_torn &= record.invalid == 0;
        (line.own, line.other) = (line.own + u64::from(is_own), line.other + u64::from(!is_own));
        line.record = Some((record.offset, record.offset + record.length));
        // A record after another one is reported as `Glued`.
        line.is_reported |= record.is_glued;
        let is_behind = line.skipped.is_some_and(|first| first < record.offset);
        is_behind.then(|| line.report_once(record.offset))?
    }

    /// Whether this many further bytes, all of them records of the form, cannot outweigh the
    /// evidence so far. What the last line says is not certain yet.
    pub(super) fn is_against(&self, rest: u64) -> bool {
        /// The shortest record of a form: `{"type":""}`.
        const SHORTEST: u64 = 11;
        let most = self.own + self.line.own + rest / SHORTEST + 1;
        self.other >= most || self.torn + u64::from(self.line.is_torn) > most
    }

    /// How many lines are records of the form, how many of something else, and how many are torn.
    pub(super) fn finish(mut self) -> (u64, u64, u64) {
        self.line(0);
        (self.own, self.other, self.torn)
    }

    /// The line of this number; counts the one before it.
    fn line(&mut self, number: u64) -> &mut Line {
        if self.line.number != number {
            let line = mem::replace(&mut self.line, Line { number, ..Line::default() });
            self.torn += u64::from(line.is_torn);
            if !line.is_torn {
                (self.own, self.other) = (self.own + line.own, self.other + line.other);
            }
        }
        &mut self.line
    }
}

impl Line {
    fn report_once(&mut self, start: u64) -> Option<u64> {
        (!mem::replace(&mut self.is_reported, true)).then_some(start)
    }
}
