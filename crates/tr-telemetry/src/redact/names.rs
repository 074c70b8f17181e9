//! Values under sensitive names.
use super::values::{assigned, bare, extent, in_name, is_odd, line, random};
use std::{borrow::Cow, ops::Range};

/// What every usual sensitive name holds, in whatever style it is written.
pub(super) fn anchors() -> impl Iterator<Item = &'static str> {
    // `pat` begins many words.
    let last = LAST_WORD.iter().filter(|word| **word != "pat");
    ANCHORS.iter().chain(WITHIN).chain(AT_END).chain(last).copied()
}

/// Those that are in no other list, or are parts of names there.
const ANCHORS: &[&str] = &[
    "_pat", "code=", "hmac", "key", "pass=", "pass:", "pass\"", "pass'", "pw=", "session", "sid=",
    "sig=", "sig\"", "ticket=",
];

/// Wherever in the joined words.
const WITHIN: &[&str] = &[
    "accesskey",
    "accountkey",
    "apikey",
    "applicationkey",
    "appkey",
    "authkey",
    "authorization",
    "cookie",
    "credential",
    "encryptionkey",
    "herokukey",
    "licensekey",
    "masterkey",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "servicerolekey",
    "sharedkey",
    "signingkey",
    "storagekey",
    "subscriptionkey",
];

/// At their end.
const AT_END: &[&str] = &["cvv", "jwt", "pwd", "sessionid", "ssn", "token"];

/// As a word of their own, the last.
const LAST_WORD: &[&str] = &["auth", "otp", "pat", "pin", "signature"];

/// The last of several words: a test's `pass: 12` is none.
const LAST_OF_WORDS: &[&str] = &["pass"];

/// The whole name, in a URL.
const QUERY: &[&str] =
    &["auth", "hmac", "key", "oauth_verifier", "pass", "pw", "sid", "sig", "signature", "ticket"];

/// The last word of names that have other values too.
const WEAK: &[&str] = &["code", "hmac", "key", "pass", "pw", "session", "sid", "sig", "ticket"];

/// What follows `passwd` in sentences.
const PLAIN: &[&str] = &[
    "and", "binary", "cannot", "command", "entries", "entry", "failed", "field", "file", "files",
    "for", "from", "hash", "in", "is", "or", "program", "the", "to", "utility", "was", "with",
];

/// Short words of sentences on tokens; others could be one, as examples have them.
const SHORT: &[&str] = &[
    "EOF", "and", "bad", "but", "does", "end", "for", "has", "in", "is", "must", "no", "none",
    "not", "or", "the", "this", "too", "used", "was",
];

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
        || (words.len() > 1 && LAST_OF_WORDS.contains(&last))
        || AT_END.iter().any(|end| joined.ends_with(end))
        || WITHIN.iter().any(|part| joined.contains(part))
        || extra.iter().any(|part| joined.contains(&**part))
}

/// Whether a name holds one of these.
fn is_in(name: &str, extra: &[Box<str>]) -> bool {
    !extra.is_empty() && {
        let joined = words(name).collect::<String>();
        extra.iter().any(|part| joined.contains(&**part))
    }
}

/// Looks at the name around `anchor`: returns the secret that stands under it, and where the name ends.
pub(super) fn look(
    text: &str,
    anchor: Range<usize>,
    extra: &[Box<str>],
) -> (Option<Range<usize>>, usize) {
    let bytes = text.as_bytes();
    // Some anchors go a little further than the name.
    let within = anchor.start + 1;
    let beyond = bytes[within..anchor.end].iter().rev().take_while(|byte| !in_name(**byte)).count();
    let anchor = anchor.start..anchor.end - beyond;
    let before = |at: usize| bytes[..at].iter().rev().take_while(|byte| in_name(**byte)).count();
    let start = anchor.start - before(anchor.start);
    let end = anchor.end + bytes[anchor.end..].iter().take_while(|byte| in_name(**byte)).count();
    (under(text, start..end, before, extra), end)
}

/// The secret under the name that stands there.
fn under(
    text: &str,
    name: Range<usize>,
    before: impl Fn(usize) -> usize,
    extra: &[Box<str>],
) -> Option<Range<usize>> {
    let hides = |name: &str| is_sensitive(name, extra);
    let (bytes, Range { start, end }) = (text.as_bytes(), name);
    let own = &text[start..end];
    let Some(value) = assigned(bytes, end, own.starts_with("--")) else {
        return spoken(text, start..end);
    };
    if let Some(name) = of_query(text, start..end) {
        let secret = end + 1..end + 1 + bare(&bytes[end + 1..]);
        if QUERY.iter().any(|it| name.eq_ignore_ascii_case(it)) && says_something(text, &secret) {
            return Some(secret);
        }
    }

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
        return is_weak(own).then(|| random(bytes, value)).flatten();
    }
    let has_all_cookies = own.eq_ignore_ascii_case("cookie") && bytes.get(value) != Some(&b'{');
    let value = if has_all_cookies { line(bytes, value) } else { extent(bytes, value) };
    let is_told =
        is_told(own, &text[end..value.start], &text[value.clone()]) && !is_in(&name, extra);
    (says_something(text, &value) && !is_told).then_some(value)
}

/// Whether a sentence tells of a thing with this name, and shows none: `token: expired`, `Auth: 401`,
/// `Unexpected token: '}'`. What machines make is no plain word; what a person makes up may be one, so
/// this is not said of passwords.
fn is_told(name: &str, sign: &str, value: &str) -> bool {
    let is = |names: &[&str]| names.iter().any(|it| name.eq_ignore_ascii_case(it));
    let by_machine = is(&["token", "auth", "jwt", "signature"]);
    let spaced = sign.strip_prefix(':').is_some_and(|rest| rest.starts_with([' ', '\t']));
    if !spaced || !(by_machine || is(&["pin", "otp", "cvv"])) {
        return false;
    }
    if sign.ends_with(['"', '\'', '`']) {
        return by_machine && value.len() <= 3 && !value.contains(char::is_alphanumeric);
    }
    let word = value.trim_end_matches(['.', '!', '?', ':']);
    let is_long = (5..=14).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    let is_word = is_long || SHORT.contains(&word);
    let is_status = word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    is_word || (by_machine && is_status)
}

fn says_something(text: &str, value: &Range<usize>) -> bool {
    let shown = &text[value.clone()];
    !["", "null", "None", "nil", "true", "false", super::REDACTED].contains(&shown)
}

/// The name of a URL's parameter, however its `&` is written.
fn of_query(text: &str, name: Range<usize>) -> Option<&str> {
    let (before, own) = (&text[..name.start], &text[name.clone()]);
    if !text[name.end..].starts_with('=') {
        return None;
    }
    match before.as_bytes().last()? {
        b'?' | b'&' => Some(own),
        b';' if before.ends_with("&amp;") => Some(own),
        b'\\' => own.strip_prefix("u0026"),
        b'%' => own.strip_prefix("26").or_else(|| own.strip_prefix("3F")),
        _ => None,
    }
}

/// A name under which not everything is a secret, but what looks drawn at random is.
fn is_weak(name: &str) -> bool {
    let last = words(name).last().unwrap_or_default();
    WEAK.contains(&last.trim_end_matches(|c: char| c.is_ascii_digit()))
}

/// A secret that a sentence or a command names without a sign: `passwd hunter2`, `the password is hunter2`.
fn spoken(text: &str, name: Range<usize>) -> Option<Range<usize>> {
    let own = &text[name.clone()];
    let is = |names: &[&str]| names.iter().any(|it| own.eq_ignore_ascii_case(it));
    let (named, of_command) = (is(&["password", "passphrase", "passcode", "pwd"]), is(&["passwd"]));
    let (pin, token) = (is(&["pin"]), is(&["token", "secret", "key"]));
    if !(named || of_command || pin || token) || text[..name.start].ends_with('/') {
        return None;
    }
    let mut at = name.end + spaces(text, name.end)?;
    if let Some(verb) = ["is ", "was "].iter().find(|it| text[at..].starts_with(**it)) {
        at += verb.len();
    }
    if token {
        return random(text.as_bytes(), at);
    }
    at += usize::from(text[at..].starts_with(['\'', '"', '`']));
    let word = &text[at..at + bare(&text.as_bytes()[at..])];
    let word = word.trim_end_matches(['.', '!', '?', ':']);
    let is_secret = match (pin, of_command) {
        (true, _) => (4..=8).contains(&word.len()) && word.bytes().all(|it| it.is_ascii_digit()),
        (_, true) => !word.starts_with(['-', '/', '[', '(']) && !PLAIN.contains(&word),
        _ => is_odd(word),
    };
    (is_secret && !word.is_empty()).then(|| at..at + word.len())
}

/// How many spaces there are, if any, and few.
fn spaces(text: &str, at: usize) -> Option<usize> {
    let count = text.as_bytes()[at..].iter().take(9).take_while(|byte| **byte == b' ').count();
    (1..9).contains(&count).then_some(count)
}
