//! A single-pass JSON scanner over one session record, for `outline.rs` and its parts (`message.rs`,
//! `part.rs`). Skipped values are validated as strictly as serde does.
//!
//! `None` means "not handled here": invalid JSON, or valid JSON that the caller does not expect (a
//! member name with an escape, another type). The record is then read with serde (`Entry::read`).
//! After `None` the position is unspecified: drop the scanner or rewind it.
use serde::de::IgnoredAny;

/// A cursor over one record.
pub(super) struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// The limit for blocks of a message, and for members of a block; only `message.rs` reads it.
    pub(super) max_items: usize,
}

/// A string as written, with its quotes and without.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'t> {
    pub(super) whole: &'t str,
    pub(super) inside: &'t str,
    pub(super) has_escapes: bool,
}

impl<'t> Scan<'t> {
    pub(super) const fn new(text: &'t str, max_items: usize) -> Self {
        Self { text, at: 0, max_items }
    }

    /// The first byte of the next token; 0 at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return *byte;
            }
            self.at += 1;
        }
        0
    }

    /// Consumes a one-byte token if it is the next.
    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next || self.take_behind_space(byte)
    }

    /// [`take`](Self::take) after white space. Out of line, because agents seldom write white space
    /// between tokens.
    #[inline(never)]
    fn take_behind_space(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == byte;
        self.at += usize::from(is_next);
        is_next
    }

    /// Whether nothing but white space is left.
    pub(super) fn is_done(&mut self) -> bool {
        self.peek();
        self.at == self.text.len()
    }

    /// Scans an object. `member` consumes the value of each member.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'t str) -> Option<()>,
    ) -> Option<()> {
        let mut has_more = self.open(b'{', b'}')?;
        while has_more {
            let name = self.unescaped()?;
            self.take(b':').then_some(())?;
            member(self, name)?;
            has_more = self.more(b'}')?;
        }
        Some(())
    }

    /// Scans an array. `element` consumes each element.
    pub(super) fn array(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let mut has_more = self.open(b'[', b']')?;
        while has_more {
            element(self)?;
            has_more = self.more(b']')?;
        }
        Some(())
    }

    /// Consumes the beginning of an object or an array; returns whether something is in it.
    #[inline]
    fn open(&mut self, open: u8, close: u8) -> Option<bool> {
        self.take(open).then_some(())?;
        let has_more = self.peek() != close;
        self.at += usize::from(!has_more);
        Some(has_more)
    }

    /// Consumes what comes behind a member or an element; returns whether another one follows.
    #[inline]
    fn more(&mut self, close: u8) -> Option<bool> {
        let next = self.peek();
        self.at += 1;
        match next {
            b',' => Some(true),
            next => (next == close).then_some(false),
        }
    }

    /// Consumes a string and returns its text; `None` if it has an escape.
    #[inline]
    pub(super) fn unescaped(&mut self) -> Option<&'t str> {
        self.take(b'"').then_some(())?;
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let end = start + ordinary(&bytes[start..]);
        self.at = end + 1;
        if bytes.get(end) == Some(&b'"') { self.text.get(start..end) } else { None }
    }

    /// Consumes a string.
    pub(super) fn string(&mut self) -> Option<Quoted<'t>> {
        self.peek();
        let start = self.at;
        let has_escapes = self.skip_string()?;
        let (whole, inside) = (start..self.at, start + 1..self.at - 1);
        let (whole, inside) = (self.text.get(whole)?, self.text.get(inside)?);
        Some(Quoted { whole, inside, has_escapes })
    }

    /// Skips a string; returns whether it has escapes.
    #[inline]
    fn skip_string(&mut self) -> Option<bool> {
        self.take(b'"').then_some(())?;
        let bytes = self.text.as_bytes();
        let mut has_escapes = false;
        loop {
            self.at += ordinary(&bytes[self.at..]);
            match bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += escape_len(&bytes[self.at..])?,
                _ => return None,
            }
            has_escapes = true;
        }
        self.at += 1;
        Some(has_escapes)
    }

    /// Consumes a literal.
    fn literal(&mut self, literal: &str) -> Option<()> {
        let is_there = self.text.as_bytes()[self.at..].starts_with(literal.as_bytes());
        self.at += literal.len();
        is_there.then_some(())
    }

    /// Consumes `null`, if that is the next value.
    pub(super) fn null(&mut self) -> Option<bool> {
        if self.peek() != b'n' {
            return Some(false);
        }
        self.literal("null").map(|()| true)
    }

    /// Consumes a boolean.
    pub(super) fn boolean(&mut self) -> Option<bool> {
        match self.peek() {
            b't' => self.literal("true").map(|()| true),
            b'f' => self.literal("false").map(|()| false),
            _ => None,
        }
    }

    /// The position of the next byte.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Goes back to a [`position`](Self::position), also after `None`.
    pub(super) const fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    /// Skips any value; returns how many members or elements it has.
    pub(super) fn skip_and_count(&mut self) -> Option<usize> {
        let mut count = 0;
        let skip = |scan: &mut Self| {
            count += 1;
            scan.skip_value()
        };
        match self.peek() {
            b'{' => self.each_member(skip)?,
            b'[' => self.array(skip)?,
            _ => self.skip_value()?,
        }
        Some(count)
    }

    /// Skips any value, of any depth.
    pub(super) fn skip_value(&mut self) -> Option<()> {
        if self.peek() == b'"' {
            return self.skip_string().map(drop);
        }
        let rest = serde_json::Deserializer::from_str(&self.text[self.at..]);
        let mut values = rest.into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(())
    }

    /// Scans an object whatever its members are called. `member` consumes their values.
    fn each_member(&mut self, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let mut has_more = self.open(b'{', b'}')?;
        while has_more {
            self.skip_string()?;
            self.take(b':').then_some(())?;
            member(self)?;
            has_more = self.more(b'}')?;
        }
        Some(())
    }
}

/// How many bytes there are before the next quote, backslash or control character: looked for in
/// eight bytes at a time.
#[inline]
fn ordinary(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let ends = ends(*word);
        if ends != 0 {
            return 8 * at + ends.trailing_zeros() as usize / 8;
        }
    }
    let is_ordinary = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
    8 * words.len() + rest.iter().take_while(is_ordinary).count()
}

/// A mask with the high bit set in the first byte that is a quote, a backslash or a control
/// character; 0 if there is none. Bits of later bytes may be wrong.
#[inline]
fn ends(word: [u8; 8]) -> u64 {
    const EACH: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(word);
    let (quote, slash) = (word ^ (EACH * b'"' as u64), word ^ (EACH * b'\\' as u64));
    // The high bit is set for bytes that are zero or below 0x20, and for no byte before the
    // first of them.
    let zero = |word: u64| word.wrapping_sub(EACH) & !word;
    let control = word.wrapping_sub(EACH * 0x20) & !word;
    (zero(quote) | zero(slash) | control) & (EACH * 0x80)
}

/// The length of the escape at the beginning of `bytes`.
fn escape_len(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
