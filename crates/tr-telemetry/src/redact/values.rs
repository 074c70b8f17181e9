//! Where the value of a name stands, and whether it looks like a secret.
use std::ops::Range;

/// What a name may be written with.
pub(super) const fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') || !byte.is_ascii()
}

/// Where the value begins after a name that ends at `at`: after `:` or `=`, or after the space
/// behind an option of a command line.
pub(super) fn assigned(bytes: &[u8], at: usize, is_option: bool) -> Option<usize> {
    let skip = |at: usize, some: &[u8]| {
        at + bytes[at..].iter().take_while(|byte| some.contains(byte)).count()
    };
    let closed = skip(at, br#"\"'`]"#);
    let sign = skip(closed, b" \t");
    let value = skip(sign, b":=>");
    // A path of Rust or C++ is no name.
    let is_path = bytes[sign..].starts_with(b"::");
    match (value > sign && !is_path, is_option && sign > at) {
        (true, _) => Some(skip(value, b" \t\r\n")),
        (false, true) => Some(sign),
        (false, false) => None,
    }
}

/// How far the value goes that begins at `at`.
pub(super) fn extent(bytes: &[u8], at: usize) -> Range<usize> {
    let rest = &bytes[at..];
    let escaped = rest.iter().take_while(|byte| **byte == b'\\').count();
    match rest.get(escaped) {
        Some(quote @ (b'"' | b'\'' | b'`')) => {
            let start = at + escaped + 1;
            start..start + quoted(&bytes[start..], *quote, escaped)
        }
        Some(b'{' | b'[') if escaped == 0 => {
            // `{SSHA}…`
            let end = nested(rest);
            at..at + end + bare(&rest[end..])
        }
        _ => at..at + scheme(rest) + bare(&rest[scheme(rest)..]),
    }
}

/// The rest of a line, or of the string that it stands in.
pub(super) fn line(bytes: &[u8], at: usize) -> Range<usize> {
    let ends = |byte: &u8| b"\r\n\\\"'`".contains(byte);
    at..at + bytes[at..].iter().take_while(|byte| !ends(byte)).count()
}

/// Up to the quote that closes, which has as many backslashes before it as the one that opened.
fn quoted(rest: &[u8], quote: u8, escaped: usize) -> usize {
    let mut slashes = 0;
    for (at, byte) in rest.iter().enumerate() {
        match *byte {
            b'\\' => slashes += 1,
            byte if byte == quote && slashes <= escaped => return at - slashes,
            _ => slashes = 0,
        }
    }
    rest.len()
}

/// Up to what ends a word in any of the usual notations.
pub(super) fn bare(rest: &[u8]) -> usize {
    rest.iter().take_while(|byte| !ends_word(**byte)).count()
}

fn ends_word(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b",;&\"'`<>)}]".contains(&byte)
}

/// The length of an authentication scheme's name, whose value is the word behind it.
fn scheme(rest: &[u8]) -> usize {
    let is = |name: &&&str| {
        rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()))
    };
    ["Bearer ", "Basic ", "Token ", "Digest ", "ApiKey ", "Bot ", "SharedKey "]
        .iter()
        .find(is)
        .map_or(0, |name| name.len())
}

/// Up to the bracket that closes the first, strings left out.
fn nested(rest: &[u8]) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    rest.len()
}

/// Shorter words do not look random.
const RANDOM: usize = 20;

/// Hexadecimal digits that are no secret are mostly shorter.
const HEX: usize = 32;

/// No key is longer, and no look goes further.
const LONGEST: usize = 1_024;

/// The word that begins at `at` or within the quotes there, if it looks drawn at random: long
/// hexadecimal digits, or long and of capitals, small letters and digits.
pub(super) fn random(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let opening = bytes[at..].iter().take_while(|byte| b"\\\"'`".contains(byte)).count();
    let start = at + opening;
    let in_word = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/_-%~".contains(byte);
    let length = bytes[start..].iter().take(LONGEST).take_while(in_word).count();
    let padding = bytes[start + length..].iter().take(2).take_while(|byte| **byte == b'=').count();
    let length = length + padding;
    let word = &bytes[start..start + length];
    let goes_on = match bytes.get(start + length..) {
        Some([b'.', next, ..]) => !next.is_ascii_whitespace(),
        Some([b'.'] | []) | None => false,
        Some([next, ..]) => !ends_word(*next) && *next != b'\\' && *next != b'|',
    };
    (!goes_on && is_random(word)).then_some(start..start + length)
}

/// Whether a word looks drawn at random.
fn is_random(word: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| word.iter().filter(|byte| is(byte)).count();
    let (digits, hex) = (count(u8::is_ascii_digit), count(u8::is_ascii_hexdigit));
    if hex == word.len() {
        return word.len() >= HEX && digits > 0 && digits < word.len();
    }
    let marks = count(|byte| b"/_-".contains(byte));
    word.len() >= RANDOM
        && digits > 1
        && count(u8::is_ascii_uppercase) > 1
        && count(u8::is_ascii_lowercase) > 1
        // A path or a name of words has more of them.
        && marks <= word.len() / 12
}

/// Whether a word of a sentence could be a secret: no plain word, but one with digits and letters.
pub(super) fn is_odd(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    word.len() >= 5
        && !word.contains(['(', '{', '[', '/', '\\'])
        && has(u8::is_ascii_alphabetic)
        && (has(u8::is_ascii_digit) || word.contains(['!', '$', '%', '^', '*', '#', '@']))
}
