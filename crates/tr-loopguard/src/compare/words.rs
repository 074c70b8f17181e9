//! The words of a text, without those that change each time.
//!
//! Every byte of every answer passes here, so a word that counts takes few comparisons: each test of
//! a word first asks for what its first bytes, its last byte or its length rule out.
//!
//! Bytes suffice: only four bytes begin white space outside ASCII, and every other byte from 0x80 on
//! belongs to a word, alone or as a part of a character. Words begin and end beside an ASCII
//! character or white space, and so never within a character.
use super::names::{NAMES, UNITS, VOLATILE};
use std::ops::Range;

/// The words of a text that count; separators do not count.
pub(crate) struct Words<'t> {
    text: &'t str,
    at: usize,
    volatile: &'t [Box<str>],
    /// Whether the last word may be one of [`NAMES`].
    pub(super) may_be_name: bool,
}

impl<'t> Words<'t> {
    pub(crate) const fn new(text: &'t str, volatile: &'t [Box<str>]) -> Self {
        Self { text, at: 0, volatile, may_be_name: false }
    }

    #[inline]
    fn word(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let mut start = self.at;
        loop {
            match KIND[usize::from(*bytes.get(start)?)] {
                GAP | COLON => start += 1,
                // Within a JSON string a line ends with an escaped letter.
                ESCAPED if start > 0 && bytes[start - 1] == b'\\' => start += 1,
                SPACE => match space(bytes, start) {
                    0 => break,
                    len => start += len,
                },
                _ => break,
            }
        }
        let mut end = end_of_run(bytes, start);
        while bytes.get(end).is_some_and(|byte| self.goes_on(start, end, *byte)) {
            end = end_of_run(bytes, end + 1);
        }
        self.at = end;
        Some(start..end)
    }

    /// Whether the word that starts at `start` goes on with the byte at `at`, which is no word byte.
    #[inline]
    fn goes_on(&self, start: usize, at: usize, byte: u8) -> bool {
        match byte {
            b':' => self.is_within_clock(start, at),
            0x80.. => space(self.text.as_bytes(), at) == 0,
            _ => false,
        }
    }

    /// Whether a colon at `at` is between two digits, the first of them not before `start`.
    fn is_within_clock(&self, start: usize, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        let follows_digit = at > start && bytes[at - 1].is_ascii_digit();
        follows_digit && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    }

    #[inline]
    fn is_volatile(&self, word: &[u8]) -> bool {
        (self.may_be_name && VOLATILE.find(word).is_some())
            || (!self.volatile.is_empty() && are_given(self.volatile, word))
    }

    /// Where the time ends that the word at `at` is, if it starts with a digit: after its unit, too.
    #[inline]
    fn after_time(&self, at: &Range<usize>) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let word = &bytes[at.clone()];
        let last = word[word.len() - 1];
        let may_be_moment =
            matches!(word, [_, b':', ..] | [_, _, b':', ..] | [_, _, _, _, b'-', ..]);
        let may_be_span = last.is_ascii_alphabetic() || last == b'.';
        let may_have_unit =
            matches!(bytes[at.end..], [b' ', first, ..] if BEGINS_UNIT[usize::from(first)]);
        if (may_be_moment && is_moment(&self.text[at.clone()]))
            || is_uuid(word)
            || (may_be_span && is_span(&self.text[at.clone()]))
        {
            return Some(at.end);
        }
        if may_have_unit && is_number(word) { after_unit(self.text, at.end) } else { None }
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let found = self.word()?;
            let word = &self.text.as_bytes()[found.clone()];
            self.may_be_name = NAMES.include(word);
            let skipped = match word[0] {
                b'0'..=b'9' => self.after_time(&found),
                _ if is_uuid(word) => Some(found.end),
                _ if self.is_volatile(word) => after_value(self.text, found.end),
                _ => None,
            };
            match skipped {
                Some(end) => self.at = end,
                None => return Some(found),
            }
        }
    }
}

#[inline(never)]
fn are_given(names: &[Box<str>], word: &[u8]) -> bool {
    names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(word))
}

/// Where the value after a name ends, if there is one.
pub(super) fn after_value(text: &str, name_end: usize) -> Option<usize> {
    let rest = &text[name_end..];
    // Quotes are escaped where a response has JSON in a string.
    let value = rest.trim_start_matches(['"', '\\', '\'', ' ']);
    let value = value.strip_prefix([':', '='])?.trim_start_matches(['\\', ' ']);
    let ends_word = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']' | '\\');
    let end = match value.chars().next() {
        Some('{' | '[') => return None,
        Some(quote @ ('"' | '\'')) => value[1..].find([quote, '\n']).map(|end| end + 2),
        _ => value.find(ends_word),
    };
    Some(text.len() - value.len() + end.unwrap_or(value.len()))
}

/// Where the unit of time ends that follows the space after a number, if there is one.
fn after_unit(text: &str, number_end: usize) -> Option<usize> {
    let rest = &text[number_end + 1..];
    let found = Words::new(rest, &[]).word()?;
    let unit = &rest[found.clone()];
    let is_unit = found.start == 0 && UNITS.iter().any(|known| unit.eq_ignore_ascii_case(known));
    is_unit.then_some(number_end + 1 + found.end)
}

/// What a byte means: see [`WORD`] and those after it.
static KIND: [u8; 256] = {
    let (mut kinds, mut at) = ([WORD; 256], 0);
    while at < 256 {
        let byte = at as u8;
        kinds[at] = match byte {
            b'n' | b'r' | b't' => ESCAPED,
            b'_' | b'-' | b'+' | b'.' => WORD,
            b':' => COLON,
            0xc2 | 0xe1 | 0xe2 | 0xe3 => SPACE,
            _ if byte.is_ascii_alphanumeric() || !byte.is_ascii() => WORD,
            _ => GAP,
        };
        at += 1;
    }
    kinds
};

/// It belongs to a word: dots and dashes join numbers and identifiers.
const WORD: u8 = 0;
/// It belongs to a word, but begins none after a backslash.
const ESCAPED: u8 = 1;
/// It belongs to a word, unless it begins white space.
const SPACE: u8 = 2;
/// It belongs to a word between two digits.
const COLON: u8 = 3;
/// It belongs to no word.
const GAP: u8 = 4;

/// Where the bytes from `at` on no longer surely belong to one word.
#[inline]
fn end_of_run(bytes: &[u8], mut at: usize) -> usize {
    let ends = |byte: u8| KIND[usize::from(byte)] > ESCAPED;
    // One check of the length for four bytes.
    while let Some([a, b, c, d]) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match () {
            () if ends(*a) => return at,
            () if ends(*b) => return at + 1,
            () if ends(*c) => return at + 2,
            () if ends(*d) => return at + 3,
            () => at += 4,
        }
    }
    while bytes.get(at).is_some_and(|byte| !ends(*byte)) {
        at += 1;
    }
    at
}

/// The length of the white space at `at`, which is not ASCII; 0 if it is none.
fn space(bytes: &[u8], at: usize) -> usize {
    match bytes[at..] {
        [0xc2, 0x85 | 0xa0, ..] => 2,
        [0xe1, 0x9a, 0x80, ..]
        | [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf, ..]
        | [0xe2, 0x81, 0x9f, ..]
        | [0xe3, 0x80, 0x80, ..] => 3,
        _ => 0,
    }
}

/// The first bytes of [`UNITS`], in both cases.
static BEGINS_UNIT: [bool; 256] = {
    let (mut begins, mut at) = ([false; 256], 0);
    while at < UNITS.len() {
        let first = UNITS[at].as_bytes()[0];
        begins[first as usize] = true;
        begins[first.to_ascii_uppercase() as usize] = true;
        at += 1;
    }
    begins
};

fn is_number(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// `2026-11-22T10:00:00.5Z`, `2026-11-22`, `10:00:00`, `1:02:03.4`; not `2026-11-22-001.csv`.
pub(super) fn is_moment(word: &str) -> bool {
    let after = |form: &str| {
        let is_like = |(form, byte): (u8, u8)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => form == byte,
        };
        let found = word.len() >= form.len() && form.bytes().zip(word.bytes()).all(is_like);
        found.then(|| word[form.len()..].trim_end_matches('.'))
    };
    let is_time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'T' | 'Z');
    let is_date = after("0000-00-00").is_some_and(|rest| {
        rest.is_empty() || (rest.starts_with('T') && rest.chars().all(is_time))
    });
    let is_clock = |form: &str| after(form).is_some_and(|rest| rest.chars().all(is_time));
    is_date || is_clock("00:00:00") || is_clock("0:00:00")
}

#[inline]
pub(super) fn is_uuid(word: &[u8]) -> bool {
    word.len() == 36
        && word.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// `12ms`, `3.4s`, `1h5m`.
pub(super) fn is_span(word: &str) -> bool {
    let mut rest = word.trim_end_matches(['.', ':']);
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        if unit.len() == rest.len() || !UNITS.contains(&&unit[..end]) {
            return false;
        }
        rest = &unit[end..];
    }
    true
}
