//! A single-pass JSON scanner that only extracts what is asked for.
//!
//! Skipped parts are validated too, as strictly as by serde.
use serde::de::IgnoredAny;

/// Deeper values are left to serde, which skips them without recursion.
const DEEP: usize = 64;

/// Strings of at least this many bytes are scanned in larger blocks.
const LONG: usize = 64;

/// Anything that is invalid, or more complex than the caller asks for, is `None`, here and below.
pub(super) struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// The limit for blocks of a message, and for members of a block.
    pub(super) most: usize,
}

/// A string as written, with its quotes and without.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'t> {
    pub(super) whole: &'t str,
    pub(super) inside: &'t str,
    pub(super) has_escapes: bool,
}

impl<'t> Scan<'t> {
    pub(super) const fn new(text: &'t str, most: usize) -> Self {
        Self { text, at: 0, most }
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

    /// Kept out of line, because most agents write no white space between tokens.
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
            let name = self.plain()?;
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

    /// A string without escapes.
    #[inline]
    pub(super) fn plain(&mut self) -> Option<&'t str> {
        self.take(b'"').then_some(())?;
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let end = start + ordinary(&bytes[start..]);
        self.at = end + 1;
        if bytes.get(end) == Some(&b'"') { self.text.get(start..end) } else { None }
    }

    /// A string.
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
    fn word(&mut self, word: &str) -> Option<()> {
        let is_there = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        is_there.then_some(())
    }

    /// Consumes `null`, if that is the next value.
    pub(super) fn null(&mut self) -> Option<bool> {
        if self.peek() != b'n' {
            return Some(false);
        }
        self.word("null").map(|()| true)
    }

    /// Consumes a boolean.
    pub(super) fn boolean(&mut self) -> Option<bool> {
        match self.peek() {
            b't' => self.word("true").map(|()| true),
            b'f' => self.word("false").map(|()| false),
            _ => None,
        }
    }

    /// The position of the next byte.
    pub(super) const fn place(&self) -> usize {
        self.at
    }

    pub(super) const fn go_back(&mut self, place: usize) {
        self.at = place;
    }

    /// Skips any value; returns how many members or elements it has.
    pub(super) fn members(&mut self) -> Option<usize> {
        let mut count = 0;
        let value = |scan: &mut Self| {
            count += 1;
            scan.value_in(1)
        };
        match self.peek() {
            b'{' => self.each_member(value)?,
            b'[' => self.array(value)?,
            _ => self.value()?,
        }
        Some(count)
    }

    /// Skips any value.
    pub(super) fn value(&mut self) -> Option<()> {
        self.value_in(0)
    }

    fn value_in(&mut self, depth: usize) -> Option<()> {
        match self.peek() {
            b'"' => self.skip_string().map(drop),
            b'{' | b'[' if depth == DEEP => self.deep(),
            b'{' => self.each_member(|scan| scan.value_in(depth + 1)),
            b'[' => self.array(|scan| scan.value_in(depth + 1)),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    /// Skips a value of any depth.
    fn deep(&mut self) -> Option<()> {
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

    fn number(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let next = |at: usize| bytes.get(at).copied().unwrap_or_default();
        self.at += usize::from(next(self.at) == b'-');
        let is_zero = next(self.at) == b'0';
        let whole = self.digits()?;
        (!is_zero || whole == 1).then_some(())?;
        if next(self.at) == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(next(self.at), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(next(self.at), b'+' | b'-'));
            self.digits()?;
        }
        Some(())
    }

    /// Consumes one digit or more; returns how many.
    fn digits(&mut self) -> Option<usize> {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        (digits > 0).then_some(digits)
    }
}

/// How many bytes there are before the next quote, backslash or control character.
#[inline]
fn ordinary(bytes: &[u8]) -> usize {
    let at = ordinary_words(&bytes[..bytes.len().min(LONG)]);
    if at < LONG {
        return at;
    }
    let at = at + plain_blocks(&bytes[at..]);
    at + ordinary_words(&bytes[at..])
}

/// The same, eight bytes at a time.
#[inline]
fn ordinary_words(bytes: &[u8]) -> usize {
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

/// The high bit of each byte that ends a run of ordinary ones; bytes after the first may be wrong.
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

/// The length of the leading blocks without the end of a string: long texts are scanned faster.
fn plain_blocks(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let is_plain = |block: &&[u8; BLOCK]| {
        let ends =
            |byte: u8| u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < b' ');
        block.iter().fold(0, |any, byte| any | ends(*byte)) == 0
    };
    BLOCK * blocks.iter().take_while(is_plain).count()
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
mod tests {
    use super::{IgnoredAny, Scan};
    use proptest::{collection::vec, prelude::*, sample::select};

    const PARTS: [&str; 34] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"",
        "\\",
        "\\n",
        "\\u00e9",
        "\\ud800",
        "\\u12",
        "0",
        "1",
        "-",
        ".",
        "5",
        "e",
        "E+",
        "true",
        "false",
        "null",
        "nul",
        " ",
        "\t",
        "\u{1}",
        "é",
        "\"a\":1",
        "\"b\":[]",
        "{}",
        "\"a text that is longer than a block of thirty-two bytes\"",
        "\"\u{7f}\"",
        "x",
    ];

    fn is_json(text: &str) -> bool {
        let mut scan = Scan::new(text, usize::MAX);
        scan.value().is_some() && scan.is_done()
    }

    proptest! {
        /// As serde has it, up to the depth.
        #[test]
        fn what_is_gone_over_is_json(parts in vec(select(&PARTS[..]), 0..12)) {
            let text = parts.concat();
            let told = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            prop_assert_eq!(is_json(&text), told, "{}", text);
        }

        #[test]
        fn strings_end_where_they_end(texts in vec(".{0,70}", 1..4), at in 0..4_usize, byte: u8) {
            let mut bytes = serde_json::to_vec(&texts).unwrap();
            let place = at * 37 % bytes.len();
            bytes[place] = byte;
            let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
            let told = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            prop_assert_eq!(is_json(&text), told, "{}", text);
        }
    }

    #[test]
    fn values_of_any_depth_are_gone_over() {
        let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!([64, 65, 1_000_000].iter().all(|depth| is_json(&deep(*depth))));
        assert!(is_json(&format!("[{}, 1]", deep(100))));
        assert!(!is_json(&deep(100)[1..]) && !is_json(&deep(100)[..150]));
    }
}
