//! Texts that are too long to be kept.
use crate::internal::floor_char_boundary;

/// What is kept of a message that is too long, in bytes.
const MESSAGE: usize = 512;

/// What is kept of a code that is too long, in bytes.
const CODE: usize = 128;

/// The beginning of a message, marked: the record that kept it has room for no more of `bytes`.
///
/// ```
/// let long = "no seat left ".repeat(1_000);
/// let kept = tr_core::shortened(&long, long.len());
/// assert!(kept.starts_with("no seat left") && kept.len() < 600);
/// assert!(kept.ends_with("[shortened: the record keeps no more of 13000 bytes]"));
/// ```
#[must_use]
pub fn shortened(message: &str, bytes: usize) -> String {
    let head = head(message, MESSAGE);
    let cut = if head.len() < message.len() { "…" } else { "" };
    format!("{head}{cut} [shortened: the record keeps no more of {bytes} bytes]")
}

/// The beginning of a code that no table has.
#[must_use]
pub fn shortened_code(code: &str) -> &str {
    head(code, CODE)
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..floor_char_boundary(text, bytes)]
}

/// The first place between characters at or after `at`, which is within the text.
#[must_use]
pub fn ceil_char_boundary(text: &str, at: usize) -> usize {
    (at..).find(|at| text.is_char_boundary(*at)).unwrap_or(at)
}
