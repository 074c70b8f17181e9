//! Secrets without a fixed word in them: known by how long their parts are.
use super::tokens::{ALNUM, DASHED, HEX, back, begins, run};
use std::ops::Range;

/// All secrets of these forms, by their start.
pub(super) fn find(text: &str) -> impl Iterator<Item = Range<usize>> {
    memchr::memchr2_iter(b'.', b'-', text.as_bytes()).filter_map(|at| match text.as_bytes()[at] {
        b'.' => discord(text, at).or_else(|| airtable(text, at)),
        _ => mailgun(text, at),
    })
}

/// A user's number in base 64, six characters, and a signature.
fn discord(text: &str, dot: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if bytes.get(dot + 7) != Some(&b'.') || run(&text[..dot + 7], dot + 1, DASHED) != 6 {
        return None;
    }
    let number = back(bytes, dot, 29, DASHED);
    let start = dot - number;
    let signature = run(text, dot + 8, DASHED);
    let is_one = (23..=28).contains(&number)
        && matches!(bytes[start], b'M' | b'N' | b'O')
        && (27..=45).contains(&signature)
        && begins(bytes, start);
    is_one.then_some(start..dot + 8 + signature)
}

/// `pat`, 14 characters, and 64 hexadecimal digits.
fn airtable(text: &str, dot: usize) -> Option<Range<usize>> {
    let start = dot.checked_sub(17)?;
    let is_one = text.as_bytes()[start..].starts_with(b"pat")
        && back(text.as_bytes(), dot, 17, ALNUM) == 17
        && run(text, dot + 1, HEX) == 64;
    is_one.then_some(start..dot + 65)
}

/// 32 hexadecimal digits, and twice eight.
fn mailgun(text: &str, dash: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_one = bytes.get(dash + 9) == Some(&b'-')
        && back(bytes, dash, 33, HEX) == 32
        && bytes.get(dash + 1..dash + 9)?.iter().all(u8::is_ascii_hexdigit)
        && bytes.get(dash + 10..dash + 18)?.iter().all(u8::is_ascii_hexdigit);
    is_one.then_some(dash.wrapping_sub(32)..dash + 18)
}
