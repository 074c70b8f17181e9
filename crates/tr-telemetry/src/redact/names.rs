//! Values under sensitive names.
use std::{borrow::Cow, ops::Range};

/// What every usual sensitive name holds, in whatever style it is written.
pub(super) const ANCHORS: &[&str] = &[
    "auth",
    "cookie",
    "credential",
    "cvv",
    "jwt",
    "key",
    "otp",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "pin",
    "pwd",
    "secret",
    "session",
    "signature",
    "ssn",
    "token",
];

/// Wherever in the joined words.
const WITHIN: &[&str] = &[
    "accesskey",
    "apikey",
    "authorization",
    "clientsecret",
    "cookie",
    "credential",
    "encryptionkey",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signingkey",
];

/// At their end.
const AT_END: &[&str] = &["cvv", "jwt", "pwd", "sessionid", "ssn", "token"];

/// As a word of their own, the last.
const LAST_WORD: &[&str] = &["auth", "otp", "pin", "signature"];

/// The words of a name, in lower case: `X-API-Key` and `xApiKey` are `x`, `api`, `key`.
pub(super) fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
        if letter.is_alphanumeric() {
            words.last_mut().expect("never empty").extend(letter.to_lowercase());
        }
    }
    words.into_iter().filter(|word| !word.is_empty())
}

/// The start of a joined name, by which it is found: short, since its words may be apart.
pub(super) fn head(joined: &str) -> &str {
    let end = joined.char_indices().nth(2).map_or(joined.len(), |(at, _)| at);
    &joined[..end]
}

pub(super) fn is_sensitive(name: &str, extra: &[Box<str>]) -> bool {
    let words: Vec<String> = words(name).collect();
    let joined = words.concat();
    let last = words.last().map_or("", String::as_str);
    LAST_WORD.contains(&last)
        || AT_END.iter().any(|end| joined.ends_with(end))
        || WITHIN.iter().any(|part| joined.contains(part))
        || extra.iter().any(|part| joined.contains(&**part))
}

/// Where the value stands that belongs to the name around `anchor`, if the name is sensitive.
pub(super) fn value_at(
    text: &str,
    anchor: Range<usize>,
    hides: impl Fn(&str) -> bool,
) -> Option<Range<usize>> {
    let in_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte) || !byte.is_ascii();
    let bytes = text.as_bytes();
    let before = |at: usize| bytes[..at].iter().rev().take_while(|byte| in_name(byte)).count();
    let start = anchor.start - before(anchor.start);
    let end = anchor.end + bytes[anchor.end..].iter().take_while(|byte| in_name(byte)).count();
    let value = assigned(bytes, end, text[start..end].starts_with("--"))?;

    // `API key: …`: the word before belongs to the name as well.
    let start = match start.checked_sub(1) {
        Some(space) if bytes[space] == b' ' => space - before(space),
        _ => start,
    };
    let name = text[start..end].trim_start_matches(['-', '.']);
    let name: Cow<'_, str> = match name.split_once(' ') {
        Some((_, second)) if hides(second) => Cow::Borrowed(second),
        _ => Cow::Borrowed(name),
    };
    if !hides(&name) {
        return None;
    }
    let value = extent(bytes, value);
    let shown = &text[value.clone()];
    let says_nothing =
        ["", "null", "None", "nil", "true", "false", super::REDACTED].contains(&shown);
    (!says_nothing).then_some(value)
}

/// Where the value begins after a name that ends at `at`: after `:` or `=`, or after the space
/// behind an option of a command line.
fn assigned(bytes: &[u8], at: usize, is_option: bool) -> Option<usize> {
    let skip = |at: usize, some: &[u8]| {
        at + bytes[at..].iter().take_while(|byte| some.contains(byte)).count()
    };
    let closed = skip(at, br#"\"'`]"#);
    let sign = skip(closed, b" \t");
    let value = skip(sign, b":=>");
    match (value > sign, is_option && sign > at) {
        (true, _) => Some(skip(value, b" \t\r\n")),
        (false, true) => Some(sign),
        (false, false) => None,
    }
}

/// How far the value goes that begins at `at`.
fn extent(bytes: &[u8], at: usize) -> Range<usize> {
    let rest = &bytes[at..];
    let escaped = rest.iter().take_while(|byte| **byte == b'\\').count();
    match rest.get(escaped) {
        Some(quote @ (b'"' | b'\'' | b'`')) => {
            let start = at + escaped + 1;
            start..start + quoted(&bytes[start..], *quote, escaped)
        }
        Some(b'{' | b'[') if escaped == 0 => at..at + nested(rest),
        _ => at..at + scheme(rest) + bare(&rest[scheme(rest)..]),
    }
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

fn bare(rest: &[u8]) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",;&\"'`<>)}]".contains(byte);
    rest.iter().take_while(|byte| !ends(byte)).count()
}

/// The length of an authentication scheme's name, whose value is the word behind it.
fn scheme(rest: &[u8]) -> usize {
    let is = |name: &&&str| {
        rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()))
    };
    ["Bearer ", "Basic ", "Token ", "Digest ", "ApiKey "]
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
