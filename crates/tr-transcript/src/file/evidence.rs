//! Decides whether a file is a session by counting lines that are records of its form.
use super::records::{SkipReason, Skipped};
use std::{collections::HashSet, mem};

/// How many lines are records of the file's form, of something else, or torn. A record that shares
/// its line with other bytes does not count: many files contain JSON.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) own: u64,
    pub(super) other: u64,
    pub(super) torn: u64,
    /// The line on which the last torn bytes are.
    torn_line: u64,
    /// The line of the last records, and how many of them are of the form or not.
    line: u64,
    on_line: (u64, u64),
    /// Lines read before the form was known that are also torn.
    held: HashSet<u64>,
    is_decided: bool,
}

impl Evidence {
    /// `is_decided` says whether the form is known from the beginning.
    pub(super) fn new(is_decided: bool) -> Self {
        Self { is_decided, ..Self::default() }
    }

    /// Bytes that are no record.
    pub(super) fn skipped(&mut self, skipped: &Skipped) {
        if skipped.why == SkipReason::Nul || self.torn_line == skipped.line {
            return;
        }
        self.torn_line = skipped.line;
        self.torn += 1;
        if !self.is_decided && self.line == skipped.line {
            self.held.insert(skipped.line);
        } else if self.line == skipped.line {
            let (own, other) = mem::take(&mut self.on_line);
            self.own -= own;
            self.other -= other;
        }
    }

    /// Whether this many further bytes, all of them records of the form, cannot outweigh the
    /// evidence so far. What was counted for the last line may still be taken back.
    pub(super) fn is_against(&self, rest: u64) -> bool {
        /// The shortest record of a form: `{"type":""}`.
        const SHORTEST: u64 = 11;
        let most = self.own + rest / SHORTEST + 1;
        self.other - self.on_line.1 >= most || self.torn > most
    }

    /// Counts a record of a file whose form is known. `is_damaged` says that bytes in it are not
    /// UTF-8, and were reported as skipped.
    pub(super) fn record(&mut self, line: u64, is_damaged: bool, is_own: bool) {
        self.heal(line, is_damaged);
        if self.torn_line == line {
            return;
        }
        if self.line != line {
            (self.line, self.on_line) = (line, (0, 0));
        }
        let (own, other) = (u64::from(is_own), u64::from(!is_own));
        self.own += own;
        self.other += other;
        self.on_line = (self.on_line.0 + own, self.on_line.1 + other);
    }

    /// Counts a record of a file whose form is not known yet.
    pub(super) fn hold(&mut self, line: u64, is_damaged: bool) {
        self.heal(line, is_damaged);
        self.line = line;
        if self.torn_line == line {
            self.held.insert(line);
        }
    }

    /// A line with a record whose bytes are not all UTF-8 is not torn for that.
    fn heal(&mut self, line: u64, is_damaged: bool) {
        if is_damaged && self.torn_line == line {
            (self.torn_line, self.torn) = (0, self.torn - 1);
            self.held.remove(&line);
        }
    }

    /// Sets the form: the lines of the records so far, and whether each is of the form.
    pub(super) fn decide(&mut self, records: impl Iterator<Item = (u64, bool)>) {
        (self.is_decided, self.line) = (true, 0);
        let held = mem::take(&mut self.held);
        let torn_line = mem::take(&mut self.torn_line);
        for (line, is_own) in records.filter(|(line, _)| !held.contains(line)) {
            self.record(line, false, is_own);
        }
        self.torn_line = torn_line;
    }
}
