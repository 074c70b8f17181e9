//! Classifies the text of an error by its words; `chain.rs` and `tool_error.rs` use it, too.
use super::{
    Finding, Kind,
    deterministic::is_deterministic,
    grpc,
    phrases::{self, Rule},
    scan::{Rank, Scan},
    status_text,
    words::{Words, follows},
};
use crate::internal::floor_char_boundary;

/// Bytes looked at from a message's beginning, and from its end if it is longer than both.
const WINDOW: usize = 2_048;

/// Classifies a failure by what its message says.
///
/// Words are matched whole and whatever their case, in a bounded part of the message, without
/// allocating. Identifiers outweigh statuses and names of exceptions, those outweigh refusals
/// that name what is wrong with the input, those outweigh everything else; of equals, the first
/// decides. A message that says nothing is transient and unclassified.
///
/// Words never show that a tool did not run: whatever a transient message says, it may have.
///
/// ```
/// use tr_core::{Ran, Verdict, classify};
///
/// let found = classify::message("connect ECONNREFUSED 127.0.0.1:5432");
/// assert_eq!((found.end.verdict, found.end.ran), (Verdict::TRANSIENT, Ran::Unknown));
///
/// let found = classify::message("Missing required parameter: timeout");
/// assert_eq!(found.end.verdict, Verdict::Permanent);
/// assert_eq!(found.reason(), "Invalid input won't change on retry");
/// ```
#[must_use]
pub fn message(text: &str) -> Finding<'static> {
    scan(text).finding().unwrap_or(Finding::of(Kind::Unclassified))
}

pub(super) fn scan(text: &str) -> Scan {
    let text = first_exception(text);
    if text.len() <= 2 * WINDOW {
        return window(text);
    }
    let head = floor_char_boundary(text, WINDOW);
    let tail = floor_char_boundary(text, text.len() - WINDOW);
    window(&text[..head]).or(window(&text[tail..]))
}

/// Of a Python traceback, what the first exception says; the lines before it quote code.
fn first_exception(text: &str) -> &str {
    const HEADER: &str = "Traceback (most recent call last):\n";
    let Some(start) = text.find(HEADER) else { return text };
    let mut rest = &text[start + HEADER.len()..];
    while rest.starts_with(' ') {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    let end = rest.find("\nTraceback ").unwrap_or(rest.len());
    if rest.is_empty() { text } else { &rest[..end] }
}

/// What a code says by the words it is made of. A code is there on purpose, so that even a vague
/// word counts as much as a name.
pub(super) fn scan_code(code: &str) -> Scan {
    words(code, Words::of_code(code)).at_least(Rank::Named)
}

fn window(text: &str) -> Scan {
    let described = grpc::from_description(text);
    let described = described.map(|kind| Scan::of(Rank::Exact, kind, None)).unwrap_or_default();
    let mut scan = described.or(words(text, Words::new(text)));
    if is_deterministic(text) {
        scan.offer(Rank::Refusal, Kind::InvalidInput);
    }
    scan
}

fn words(text: &str, mut words: Words<'_>) -> Scan {
    let mut scan = Scan::default();
    let mut before = [""; 2];
    while let Some(word) = words.next() {
        if let Some((status, kind)) = status_text::status(text, before, word, words) {
            scan.name_status(status);
            scan.offer(Rank::Named, kind);
        }
        if let Some((rank, kind)) = status_text::code(text, before, word) {
            scan.offer(rank, kind);
        }
        let next = words.clone().next().map_or("", |next| next.text);
        for rule in phrases::beginning_with(word.text, next) {
            if follows(rule.rest, words) && !is_denied(rule, before[0]) {
                scan.offer(rule.rank, rule.kind);
                break;
            }
        }
        before = [word.text, before[0]];
    }
    scan
}

/// "No rate limit configured" is no rate limit. A refusal stays one, whatever stands before it.
fn is_denied(rule: &Rule, before: &str) -> bool {
    matches!(rule.rank, Rank::Failure | Rank::Broad | Rank::Hint)
        && ["no", "not", "without", "non", "never"].iter().any(|no| before.eq_ignore_ascii_case(no))
}
