//! Finds the records in a stretch of a file that a crash may have torn.
use super::piece::{SkipReason, Skipped};
use serde::de::IgnoredAny;
use std::{borrow::Cow, mem, ops::Range};

/// A limit: how often each byte of a stretch may be scanned on average. A torn record is scanned once
/// for each object that is open where it ends.
pub(super) const EFFORT: usize = 32;

/// A part of the input; ranges are positions in the reader's buffer.
#[derive(Debug)]
pub(super) enum Part {
    Record(Range<usize>),
    /// What looks like one record and nothing else; it may be invalid UTF-8, or invalid JSON.
    Promising(Range<usize>),
    Skipped(Range<usize>, SkipReason),
    /// A skipped run that was larger than the buffer.
    Far(Skipped),
}

/// Splits a stretch without line ends and NULs into parts, one at a time: a line may hold a million
/// records.
#[derive(Debug)]
pub(super) struct Cut {
    rest: Range<usize>,
    /// Where the bytes begin that belong to no record so far.
    torn: usize,
    /// The record behind the part that was returned last.
    found: Option<Range<usize>>,
    effort: usize,
}

impl Cut {
    /// Begins to split `at` of `buffer`.
    pub(super) fn of(buffer: &[u8], at: Range<usize>) -> Self {
        let rest = trim(buffer, at);
        let effort = EFFORT.saturating_mul(rest.len());
        let mut cut = Self { torn: rest.start, rest: rest.clone(), found: None, effort };
        let bytes = &buffer[rest.clone()];
        if !has_members(bytes) && is_json(bytes) {
            (cut.torn, cut.rest.start) = (rest.end, rest.end);
            cut.found = Some(rest);
        }
        cut
    }

    /// The next part.
    pub(super) fn next(&mut self, buffer: &[u8]) -> Option<Part> {
        if let Some(record) = self.found.take() {
            return Some(Part::Record(record));
        }
        while let Some(found) = memchr::memchr(b'{', &buffer[self.rest.clone()]) {
            let start = self.rest.start + found;
            let (length, cost) = object(&buffer[start..self.rest.end]);
            let Some(effort) = self.effort.checked_sub(cost) else { break };
            self.effort = effort;
            let Some(length) = length else {
                self.rest.start = self.rest.start.max(start + 1);
                continue;
            };
            self.rest.start = start + length;
            // An object inside a torn record is followed by the rest of that record.
            let next = buffer[self.rest.clone()].iter().find(|byte| !is_space(**byte));
            if !matches!(next, Some(b',' | b']' | b'}' | b':')) {
                let record = start..self.rest.start;
                let torn = mem::replace(&mut self.torn, record.end)..start;
                let Some(skipped) = skipped(buffer, torn) else {
                    return Some(Part::Record(record));
                };
                self.found = Some(record);
                return Some(skipped);
            }
        }
        self.rest.start = self.rest.end;
        skipped(buffer, mem::replace(&mut self.torn, self.rest.end)..self.rest.end)
    }
}

pub(super) fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Whether these bytes begin with an object that has members.
fn has_members(bytes: &[u8]) -> bool {
    // Braces without members occur in texts; inside a text, a member's quote would be escaped.
    let inside = bytes.strip_prefix(b"{").unwrap_or_default();
    inside.iter().find(|byte| !is_space(**byte)) == Some(&b'"')
}

/// The length of the object that `bytes` begin with, if it is complete and has members; and how
/// many bytes were scanned.
fn object(bytes: &[u8]) -> (Option<usize>, usize) {
    if !has_members(bytes) {
        return (None, 1);
    }
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => (Some(values.byte_offset()), values.byte_offset()),
        Some(Err(error)) if error.is_eof() => (None, bytes.len()),
        Some(Err(error)) => (None, error.column().saturating_sub(1).clamp(1, bytes.len())),
        None => (None, 1),
    }
}

/// The length of the record that `bytes` begin with, if raw line breaks in its strings divide it;
/// else how many bytes say that it is not so, or none if they do not suffice.
pub(super) fn divided(bytes: &[u8]) -> Result<usize, Option<usize>> {
    if !has_members(bytes) {
        return Err(Some(0));
    }
    let (mut at, mut depth, mut is_divided) = (0_usize, 0_usize, false);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => {
                let is_record = is_divided && is_json(on_one_line(&bytes[..at]).as_bytes());
                return if is_record { Ok(at) } else { Err(Some(at)) };
            }
            b'}' | b']' => depth -= 1,
            b'"' => {
                let length = string_len(&bytes[at..]).ok_or(Some(at))?;
                let string = &bytes[at..at + length];
                at += string.len();
                is_divided |= memchr::memchr(b'\n', string).is_some();
                let next = bytes[at..].iter().find(|byte| !is_space(**byte)).ok_or(None)?;
                // In a torn record, the string ends in the next one.
                if !matches!(next, b',' | b':' | b']' | b'}') {
                    return Err(Some(at));
                }
            }
            b'\n' => return Err(Some(at)),
            _ => {}
        }
    }
    Err(None)
}

/// The text of a record, with the line breaks in it escaped.
pub(super) fn on_one_line(record: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(record);
    if !text.contains('\n') {
        return text;
    }
    text.replace('\r', "\\r").replace('\n', "\\n").into()
}

/// The length of the rest of a string, its quote included; all bytes if the string does not end.
/// `None` if a backslash stands before a line break.
fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[from..]) {
        from += found + 1;
        match (bytes[from - 1], bytes.get(from)) {
            (b'"', _) => return Some(from),
            (_, Some(b'\r' | b'\n')) => return None,
            _ => from = (from + 1).min(bytes.len()),
        }
    }
    Some(bytes.len())
}

/// The first bytes of a record that no reader of JSON lines takes: a raw line break, or a run of
/// invalid UTF-8.
pub(super) fn unreadable(buffer: &[u8], at: Range<usize>) -> Option<(Range<usize>, SkipReason)> {
    let bytes = &buffer[at.clone()];
    let line = &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())];
    let valid = std::str::from_utf8(line).map_or_else(|error| error.valid_up_to(), str::len);
    if valid == line.len() && valid < bytes.len() {
        let start = at.start + valid;
        return Some((start..start + 1, SkipReason::LineBreak));
    }
    let start = at.start + valid;
    let chunks = buffer[start..at.end].utf8_chunks().take_while(|chunk| chunk.valid().is_empty());
    let length: usize = chunks.map(|chunk| chunk.invalid().len()).sum();
    (length > 0).then_some((start..start + length, SkipReason::NotUtf8))
}

fn skipped(buffer: &[u8], at: Range<usize>) -> Option<Part> {
    let at = trim(buffer, at);
    let is_text = std::str::from_utf8(&buffer[at.clone()]).is_ok();
    let why = if is_text { SkipReason::Torn } else { SkipReason::NotUtf8 };
    (!at.is_empty()).then_some(Part::Skipped(at, why))
}

/// `at` without the white space around it.
pub(super) fn trim(buffer: &[u8], at: Range<usize>) -> Range<usize> {
    let bytes = &buffer[at.clone()];
    let before = bytes.iter().take_while(|byte| is_space(**byte)).count();
    let after = bytes[before..].iter().rev().take_while(|byte| is_space(**byte)).count();
    at.start + before..at.end - after
}

/// JSON's white space.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
