//! Strings: where they end, how they are escaped, how names compare.
use super::{Error, ErrorKind};
use std::cmp::Ordering;

/// Eight bytes at once: the lowest and the highest bit of each.
const ONES: u64 = u64::MAX / 255;
const TOPS: u64 = ONES << 7;

/// The number of bytes before the first quote, backslash or control character.
#[inline]
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    // A byte below `limit` borrows into its top bit. Borrows only run upward, so the lowest hit
    // is a true one.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & TOPS;

    let (words, tail) = bytes.as_chunks();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let hits = below(word, 0x20) | quote | backslash;
        if hits != 0 {
            return i * 8 + hits.trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    bytes.len() - tail.len() + tail.iter().position(special).unwrap_or(tail.len())
}

/// Reads the escape whose backslash is at `at`: its character, and where the text goes on.
pub(super) fn read_escape(text: &[u8], at: usize) -> Result<(char, usize), Error> {
    let end = || Error::new(ErrorKind::UnexpectedEnd, text.len());
    let plain = match text.get(at + 1).ok_or_else(end)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return read_unicode_escape(text, at),
        _ => return Err(Error::new(ErrorKind::InvalidEscape, at)),
    };
    Ok((plain, at + 2))
}

fn read_unicode_escape(text: &[u8], at: usize) -> Result<(char, usize), Error> {
    let first = read_hex(text, at)?;
    if let Some(char) = char::from_u32(first) {
        return Ok((char, at + 6));
    }
    let lone = Error::new(ErrorKind::LoneSurrogate, at);
    let second = match (first, text.get(at + 6), text.get(at + 7)) {
        (0xd800..0xdc00, None, _) | (0xd800..0xdc00, Some(b'\\'), None) => {
            return Err(Error::new(ErrorKind::UnexpectedEnd, text.len()));
        }
        (0xd800..0xdc00, Some(b'\\'), Some(b'u')) => read_hex(text, at + 6)?,
        _ => return Err(lone),
    };
    match char::decode_utf16([first as u16, second as u16]).next() {
        Some(Ok(char)) => Ok((char, at + 12)),
        _ => Err(lone),
    }
}

/// The four hexadecimal digits of the escape whose backslash is at `at`.
fn read_hex(text: &[u8], at: usize) -> Result<u32, Error> {
    (at + 2..at + 6).try_fold(0, |value, i| {
        let end = || Error::new(ErrorKind::UnexpectedEnd, text.len());
        let digit = char::from(*text.get(i).ok_or_else(end)?).to_digit(16);
        Ok(value * 16 + digit.ok_or_else(|| Error::new(ErrorKind::InvalidEscape, at))?)
    })
}

/// Writes `char` as RFC 8785 does; tells whether it had to be escaped.
pub(super) fn write_char(char: char, out: &mut Vec<u8>) -> bool {
    let short = match char {
        '"' | '\\' => char as u8,
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        ..' ' => {
            let digit = b"0123456789abcdef"[char as usize % 16];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' + char as u8 / 16, digit]);
            return true;
        }
        _ => {
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            return false;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
    true
}

/// A member's name in canonical form, without its quotes.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) canonical: &'a [u8],
    pub(super) escaped: bool,
}

impl Name<'_> {
    /// Compares by UTF-16 code units, as RFC 8785 sorts.
    #[inline]
    pub(super) fn cmp(self, other: Self) -> Ordering {
        if self.escaped || other.escaped {
            return self.bytes().map(utf16_rank).cmp(other.bytes().map(utf16_rank));
        }
        let (ours, theirs) = (self.canonical, other.canonical);
        match ours.iter().zip(theirs).find(|(a, b)| a != b) {
            Some((a, b)) => utf16_rank(*a).cmp(&utf16_rank(*b)),
            None => ours.len().cmp(&theirs.len()),
        }
    }

    /// The first eight bytes as a number: where two differ, the names compare as they do.
    #[inline]
    pub(super) fn prefix(self, behind: &[u8]) -> u64 {
        let len = self.canonical.len();
        if let (false, Some(first)) = (self.escaped, behind.first_chunk()) {
            let beyond = if len < 8 { u64::MAX >> (len * 8) } else { 0 };
            let first = u64::from_be_bytes(*first) & !beyond;
            if first & TOPS == 0 {
                return first;
            }
        }
        let mut first = [0; 8];
        first.iter_mut().zip(self.bytes()).for_each(|(to, byte)| *to = utf16_rank(byte));
        u64::from_be_bytes(first)
    }

    #[inline]
    pub(super) fn is(self, plain: &str) -> bool {
        if self.escaped {
            return self.bytes().eq(plain.bytes());
        }
        self.canonical == plain.as_bytes()
    }

    pub(super) fn to_plain(self) -> String {
        String::from_utf8_lossy(&self.bytes().collect::<Vec<_>>()).into_owned()
    }

    /// The unescaped name's bytes. What the canonical form escapes is ASCII.
    fn bytes(self) -> impl Iterator<Item = u8> {
        let mut rest = self.canonical.iter();
        std::iter::from_fn(move || match *rest.next()? {
            b'\\' => Some(match *rest.next()? {
                b'b' => 0x8,
                b'f' => 0xc,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'u' => rest.by_ref().take(4).fold(0, |value, digit| {
                    value << 4 | char::from(*digit).to_digit(16).unwrap_or(0) as u8
                }),
                byte => byte,
            }),
            byte => Some(byte),
        })
    }
}

/// Orders the bytes of UTF-8 as UTF-16's code units are ordered: characters beyond the first
/// plane are surrogates there, which come before U+E000.
#[inline]
fn utf16_rank(byte: u8) -> u8 {
    match byte {
        0xee | 0xef => byte + 5,
        0xf0.. => byte - 2,
        _ => byte,
    }
}

/// Appends the canonical string `quoted` with its words parted by single spaces.
pub(super) fn collapse_whitespace(quoted: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let first = out.len();
    let text = String::from_utf8_lossy(&quoted[1..quoted.len() - 1]);
    let (mut rest, mut gap) = (&*text, false);
    while let Some(char) = rest.chars().next() {
        let len = match rest.as_bytes() {
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            _ => char.len_utf8(),
        };
        let (unit, after) = rest.split_at(len);
        rest = after;
        if char.is_whitespace() || matches!(unit, r"\t" | r"\n" | r"\u000b" | r"\f" | r"\r") {
            gap = out.len() > first;
            continue;
        }
        if std::mem::take(&mut gap) {
            out.push(b' ');
        }
        out.extend_from_slice(unit.as_bytes());
    }
    out.push(b'"');
}
