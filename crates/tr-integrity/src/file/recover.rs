//! Finds the records in a stretch of a file that a crash may have torn.
use super::piece::{SkipReason, Skipped};
use serde::de::IgnoredAny;
use std::{collections::VecDeque, ops::Range};

/// A limit: how often each byte of a stretch may be scanned on average. A few scans are enough,
/// because the objects found inside an incomplete object are remembered.
const EFFORT: usize = 16;

/// For how many incomplete objects this is remembered at once. An object may begin inside a string
/// of another, and where one has strings the other has none: more than two rarely overlap.
const REMEMBERED: usize = 4;

/// A part of the input; ranges are positions in the reader's buffer.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Record(Range<usize>),
    /// What looks like one record and nothing else; it may be invalid UTF-8, or invalid JSON.
    Promising(Range<usize>),
    Skipped(Range<usize>, SkipReason),
    /// A skipped run that was larger than the buffer.
    Far(Skipped),
}

/// Splits `at` of `buffer`, a stretch without line ends and NULs, into parts.
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
    let mut known: Vec<Inside> = Vec::new();
    while let Some(found) = memchr::memchr(b'{', &buffer[from..at.end]) {
        let start = from + found;
        let length = match known.iter_mut().find_map(|inside| inside.object(start)) {
            Some(length) => length,
            None => {
                let (length, cost) = object(&buffer[start..at.end]);
                let Some(left) = effort.checked_sub(cost) else { break };
                effort = left;
                if length.is_none() && cost > 1 {
                    known.retain(|inside| inside.end > start);
                    if known.len() == REMEMBERED {
                        known.remove(0);
                    }
                    known.push(Inside::of(buffer, start..start + cost));
                }
                length
            }
        };
        let Some(length) = length else {
            from = start + 1;
            continue;
        };
        from = start + length;
        // An object inside a torn record is followed by the rest of that record.
        let next = buffer[from..at.end].iter().find(|byte| !is_space(**byte));
        if !matches!(next, Some(b',' | b']' | b'}' | b':')) {
            skipped(buffer, torn..start, parts);
            parts.push_back(Part::Record(start..from));
            torn = from;
        }
    }
    skipped(buffer, torn..at.end, parts);
}

/// The length of the object that `bytes` begin with, if it is complete and has members; and how
/// many bytes were scanned.
fn object(bytes: &[u8]) -> (Option<usize>, usize) {
    // Braces without members occur in texts; inside a text, a member's quote would be escaped.
    let first = bytes[1..].iter().find(|byte| !is_space(**byte));
    if first != Some(&b'"') {
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

/// The objects inside an incomplete one.
struct Inside {
    end: usize,
    /// The start and length of each, in order; length 0 if it is incomplete.
    objects: VecDeque<(u32, u32)>,
    base: usize,
}

impl Inside {
    /// `at` begins an object and holds no invalid JSON.
    fn of(buffer: &[u8], at: Range<usize>) -> Self {
        let (mut objects, mut open) = (Vec::<(u32, u32)>::new(), Vec::new());
        let (bytes, mut from) = (&buffer[at.clone()], 0);
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        while let Some(found) = memchr::memchr3(b'"', b'{', b'}', &bytes[from..]) {
            let place = from + found;
            from = place + 1;
            match bytes[place] {
                b'{' => {
                    open.push(objects.len());
                    objects.push((number(place), 0));
                }
                b'}' => {
                    let Some((start, length)) = open.pop().map(|object| &mut objects[object])
                    else {
                        break;
                    };
                    let first = bytes[*start as usize + 1..].iter().find(|byte| !is_space(**byte));
                    // Objects without members are ignored.
                    *length = if first == Some(&b'"') { number(from - *start as usize) } else { 0 };
                }
                _ => from += string_len(&bytes[from..]),
            }
        }
        Self { end: at.end, objects: objects.into(), base: at.start }
    }

    /// The length of the object that begins at `start`, if it is complete. `None` if no object is
    /// known to begin there. Later calls must ask for later positions.
    fn object(&mut self, start: usize) -> Option<Option<usize>> {
        let start = start.checked_sub(self.base)?;
        while self.objects.front().is_some_and(|&(object, _)| (object as usize) < start) {
            self.objects.pop_front();
        }
        let &(_, length) = self.objects.front().filter(|(object, _)| *object as usize == start)?;
        Some(Some(length as usize).filter(|length| *length > 0))
    }
}

/// The length of the rest of a string, its quote included; all bytes if the string does not end.
fn string_len(bytes: &[u8]) -> usize {
    let mut from = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[from..]) {
        from += found + 1;
        if bytes[from - 1] == b'"' {
            return from;
        }
        from = (from + 1).min(bytes.len());
    }
    bytes.len()
}

/// The first run of invalid UTF-8 in `at`.
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

#[cfg(test)]
mod tests {
    use super::{Inside, object};
    use proptest::{collection::vec, prelude::*};

    proptest! {
        /// As a look at each object alone would.
        #[test]
        fn what_is_inside_of_a_torn_object_is_known(parts in vec(prop_oneof![
            Just("{\"a\":"), Just("{"), Just("}"), Just("\""), Just("\\"), Just("1"), Just(","),
            Just("\"b\":"), Just("{\"c\":2}"), Just("\"{\\\"d\\\":1}\""), Just(" "), Just("[]"),
        ], 0..14)) {
            let text = parts.concat().into_bytes();
            for start in memchr::memchr_iter(b'{', &text) {
                let (None, cost) = object(&text[start..]) else { continue };
                let mut inside = Inside::of(&text, start..start + cost);
                let end = inside.end;
                for within in memchr::memchr_iter(b'{', &text[..end]).filter(|at| *at >= start) {
                    if let Some(length) = inside.object(within) {
                        prop_assert_eq!(length, object(&text[within..]).0, "{} {}", start, within);
                    }
                }
            }
        }
    }
}
