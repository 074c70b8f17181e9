//! Edits of a session file: changed, removed and added lines, and the resulting text.
use super::session_file::{PartOfFile, SessionFile};
use crate::json;
use std::{borrow::Cow, collections::HashMap};

/// Edits of a session file's records.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// The new text of a record; `None` if it is removed.
    changed: HashMap<usize, Option<String>>,
    /// New lines.
    added: HashMap<InsertAt, Vec<String>>,
}

/// Where a new line is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum InsertAt {
    Before(usize),
    After(usize),
    End,
}

impl Edits {
    /// The text of a record after the edits.
    pub(super) fn text<'f>(&'f self, file: &'f SessionFile, record: usize) -> Cow<'f, str> {
        match self.changed.get(&record) {
            Some(Some(text)) => Cow::Borrowed(text),
            _ => file.text(record),
        }
    }

    pub(super) fn set(&mut self, record: usize, text: String) {
        self.changed.insert(record, Some(text));
    }

    /// Gives a member of a record another value.
    pub(super) fn set_member(
        &mut self,
        file: &SessionFile,
        record: usize,
        name: &str,
        value: &str,
    ) {
        let text = json::set_member(&self.text(file, record), name, value);
        self.set(record, text);
    }

    pub(super) fn remove(&mut self, record: usize) {
        self.changed.insert(record, None);
    }

    pub(super) fn is_gone(&self, record: usize) -> bool {
        matches!(self.changed.get(&record), Some(None))
    }

    pub(super) fn insert(&mut self, spot: InsertAt, line: String) {
        self.added.entry(spot).or_default().push(line);
    }

    /// The lines that are inserted there.
    fn added(&self, spot: InsertAt) -> &[String] {
        self.added.get(&spot).map_or(&[], Vec::as_slice)
    }

    /// Whether a record changes or goes.
    pub(super) fn is_touched(&self, record: usize) -> bool {
        self.changed.contains_key(&record)
    }

    /// For each record after the edits, its index before; `None` for new ones.
    pub(super) fn origins(&self, records: usize) -> Vec<Option<usize>> {
        let mut origins = Vec::with_capacity(records);
        let new = |spot| self.added(spot).iter().map(|_| None);
        for record in 0..records {
            origins.extend(new(InsertAt::Before(record)));
            origins.extend((!self.is_gone(record)).then_some(Some(record)));
            origins.extend(new(InsertAt::After(record)));
        }
        origins.extend(new(InsertAt::End));
        origins
    }

    /// How many lines will stand before a record, or before what remains of it.
    pub(super) fn number(&self, record: usize) -> usize {
        let is_before = |spot: &InsertAt| match *spot {
            InsertAt::Before(at) => at <= record,
            InsertAt::After(at) => at < record,
            InsertAt::End => false,
        };
        let added = self.added.iter().filter(|(spot, _)| is_before(spot));
        let stay = (0..record).filter(|&record| !self.is_gone(record)).count();
        stay + added.map(|(_, lines)| lines.len()).sum::<usize>()
    }

    /// The file with the edits, and without the bytes that are no record.
    pub(super) fn write(&self, file: &SessionFile) -> Vec<u8> {
        let bytes = &*file.bytes;
        let first_line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let end = if first_line.ends_with(b"\r") { "\r\n" } else { "\n" };
        let written = Vec::with_capacity(bytes.len());
        let mut out = FileOutput { bytes: written, end, has_record: false, is_gone: false };
        let mut done = 0;
        for part in &file.parts {
            let (at, record) = match *part {
                PartOfFile::Record(record) => (file.spans[record].at.clone(), Some(record)),
                PartOfFile::Skipped(skipped) => {
                    let start = skipped.offset as usize;
                    (start..start + skipped.length as usize, None)
                }
            };
            // Invalid UTF-8 inside a record is reported before it, and is dropped with the record's
            // text.
            let behind = file.spans.partition_point(|span| span.at.end < at.end);
            let next = file.spans.get(behind).map(|span| &span.at);
            if record.is_none() && next.is_some_and(|next| next.start <= at.start) {
                continue;
            }
            out.gap(&bytes[done..at.start]);
            done = at.end;
            if let Some(record) = record {
                self.write_record(file, record, &mut out);
            } else {
                out.gone();
            }
        }
        out.gap(&bytes[done..]);
        for line in self.added(InsertAt::End) {
            out.record(line.as_bytes());
            out.end_line();
        }
        out.bytes
    }

    fn write_record(&self, file: &SessionFile, record: usize, out: &mut FileOutput<'_>) {
        for line in self.added(InsertAt::Before(record)) {
            out.record(line.as_bytes());
            out.end_line();
        }
        match self.changed.get(&record) {
            Some(None) => out.gone(),
            Some(Some(text)) => out.record(text.as_bytes()),
            None => out.record(file.text(record).as_bytes()),
        }
        for line in self.added(InsertAt::After(record)) {
            out.record(line.as_bytes());
        }
    }
}

/// The file while it is written.
struct FileOutput<'f> {
    bytes: Vec<u8>,
    end: &'f str,
    /// Whether a record stands on the line.
    has_record: bool,
    /// Whether nothing is left of the line, so that its line break is dropped too.
    is_gone: bool,
}

impl FileOutput<'_> {
    /// Begins a record, on a line of its own.
    fn record(&mut self, bytes: &[u8]) {
        if self.has_record {
            self.bytes.extend_from_slice(self.end.as_bytes());
        }
        self.bytes.extend_from_slice(bytes);
        (self.has_record, self.is_gone) = (true, false);
    }

    /// Ends the line of a record that was not there before.
    fn end_line(&mut self) {
        self.bytes.extend_from_slice(self.end.as_bytes());
        self.has_record = false;
    }

    fn gone(&mut self) {
        self.is_gone = !self.has_record;
    }

    /// What stands between two parts.
    fn gap(&mut self, mut gap: &[u8]) {
        let line_end = gap.iter().position(|&byte| byte == b'\n');
        if self.is_gone {
            gap = line_end.map_or(&[], |end| &gap[end + 1..]);
            self.is_gone = line_end.is_none();
        }
        self.bytes.extend_from_slice(gap);
        self.has_record &= line_end.is_none();
    }
}
