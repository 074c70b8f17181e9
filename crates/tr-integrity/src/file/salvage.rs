//! Finds the records in a stretch of a file that a crash may have torn.
use super::records::{SkipReason, Skipped};
use serde::de::IgnoredAny;
use std::{collections::VecDeque, ops::Range};

/// How often each byte of a stretch may be looked at on average. More would be of use only where
/// garbage is nested deeper than this.
const EFFORT: usize = 64;

/// A part of what was read; ranges are places in the reader's buffer.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Record(Range<usize>),
    Skipped(Range<usize>, SkipReason),
    /// It was larger than the buffer.
    Far(Skipped),
}

/// Cuts `at` of `buffer`, a stretch without line ends and NULs, into parts.
pub(super) fn cut(buffer: &[u8], at: Range<usize>, parts: &mut VecDeque<Part>) {
    let at = trim(buffer, at);
    if at.is_empty() {
        return;
    }
    if serde_json::from_slice::<IgnoredAny>(&buffer[at.clone()]).is_ok() {
        return parts.push_back(Part::Record(at));
    }
    let (mut from, mut torn) = (at.start, at.start);
    let mut effort = EFFORT.saturating_mul(at.len());
    while let Some(found) = memchr::memchr(b'{', &buffer[from..at.end]) {
        let start = from + found;
        let (length, cost) = object(&buffer[start..at.end]);
        let Some(left) = effort.checked_sub(cost) else { break };
        effort = left;
        let Some(length) = length else {
            from = start + 1;
            continue;
        };
        from = start + length;
        // What is inside of a torn record is followed by more of it.
        let next = buffer[from..at.end].iter().find(|byte| !is_space(**byte));
        if !matches!(next, Some(b',' | b']' | b'}' | b':')) {
            skipped(buffer, torn..start, parts);
            parts.push_back(Part::Record(start..from));
            torn = from;
        }
    }
    skipped(buffer, torn..at.end, parts);
}

/// How long the object is with which `bytes` begin, if it is whole and has members; and how many
/// bytes were looked at to know.
fn object(bytes: &[u8]) -> (Option<usize>, usize) {
    // Braces without members stand in texts; a member's quote would be escaped there.
    let first = bytes[1..].iter().find(|byte| !is_space(**byte));
    if first != Some(&b'"') {
        return (None, 1);
    }
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => (Some(values.byte_offset()), values.byte_offset()),
        Some(Err(error)) => (None, error.column().min(bytes.len())),
        None => (None, 1),
    }
}

/// The first run in `at` that is not UTF-8.
pub(super) fn invalid(buffer: &[u8], at: Range<usize>) -> Option<Range<usize>> {
    let valid = std::str::from_utf8(&buffer[at.clone()]).err()?.valid_up_to();
    let start = at.start + valid;
    let chunks = buffer[start..at.end].utf8_chunks().take_while(|chunk| chunk.valid().is_empty());
    let length: usize = chunks.map(|chunk| chunk.invalid().len()).sum();
    Some(start..start + length)
}

fn skipped(buffer: &[u8], at: Range<usize>, parts: &mut VecDeque<Part>) {
    let at = trim(buffer, at);
    if at.is_empty() {
        return;
    }
    let is_text = std::str::from_utf8(&buffer[at.clone()]).is_ok();
    let why = if is_text { SkipReason::Torn } else { SkipReason::NotUtf8 };
    parts.push_back(Part::Skipped(at, why));
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
