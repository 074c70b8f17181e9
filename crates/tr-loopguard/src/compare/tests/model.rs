//! The words of a text and whether it is pending, character by character: slow, and with no tables.
//!
//! It shares with the code the names, and what looks at one word alone.
use crate::compare::{
    names::{PENDING, SAID, STILL, UNITS, VOLATILE},
    stands_alone,
    words::{after_value, is_moment, is_span, is_uuid},
};
use std::ops::Range;

/// The words that count.
pub(super) fn words<'t>(text: &'t str, volatile: &[Box<str>]) -> Vec<&'t str> {
    places(text, volatile).into_iter().map(|at| &text[at]).collect()
}

/// Whether a word says that a job has not ended.
pub(super) fn is_pending(text: &str, volatile: &[Box<str>]) -> bool {
    let is_sentence = !text.contains('\n') && !text.contains("\\n");
    let says = |at: Range<usize>| {
        let word = &text[at.clone()];
        let state = PENDING.names.iter().any(|name| *name != STILL && is_named(word, name))
            || word.to_ascii_lowercase().ends_with("_in_progress");
        (is_sentence && SAID.iter().any(|name| is_named(word, name)))
            || (state && stands_alone(&text[..at.start], &text[at.end..]))
    };
    text.len() <= 1024 && places(text, volatile).into_iter().any(says)
}

fn places(text: &str, volatile: &[Box<str>]) -> Vec<Range<usize>> {
    let (mut places, mut from) = (Vec::new(), 0);
    while let Some(found) = word(text, from) {
        let word = &text[found.clone()];
        let skipped = if word.starts_with(|c: char| c.is_ascii_digit()) {
            (is_moment(word) || is_uuid(word.as_bytes()) || is_span(word))
                .then_some(found.end)
                .or_else(|| {
                    let is_number = word.chars().all(|c| c.is_ascii_digit() || c == '.');
                    is_number.then(|| after_unit(text, found.end)).flatten()
                })
        } else if is_uuid(word.as_bytes()) {
            Some(found.end)
        } else {
            let is_volatile = VOLATILE.names.iter().any(|name| is_named(word, name))
                || volatile.iter().any(|name| name.eq_ignore_ascii_case(word));
            is_volatile.then(|| after_value(text, found.end)).flatten()
        };
        from = skipped.unwrap_or(found.end);
        if skipped.is_none() {
            places.push(found);
        }
    }
    places
}

/// The next word from `from` on.
fn word(text: &str, from: usize) -> Option<Range<usize>> {
    let is_escape = |at: usize, c: char| matches!(c, 'n' | 'r' | 't') && text[..at].ends_with('\\');
    let is_in_clock = |start: usize, at: usize| {
        text[start..at].ends_with(|c: char| c.is_ascii_digit())
            && text[at + 1..].starts_with(|c: char| c.is_ascii_digit())
    };
    let starts = |(at, c): &(usize, char)| is_of_word(*c) && !is_escape(*at, *c);
    let chars = |from: usize| text[from..].char_indices().map(move |(at, c)| (from + at, c));
    let (start, _) = chars(from).find(starts)?;
    let ends = |(at, c): &(usize, char)| {
        *at > start && !is_of_word(*c) && (*c != ':' || !is_in_clock(start, *at))
    };
    let end = chars(start).find(ends).map_or(text.len(), |(end, _)| end);
    Some(start..end)
}

fn is_of_word(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.'),
        false => !c.is_whitespace(),
    }
}

/// Where a unit of time after a number ends, if there is one.
fn after_unit(text: &str, from: usize) -> Option<usize> {
    let next = text[from..].starts_with(' ').then(|| word(text, from)).flatten()?;
    let unit = &text[next.clone()];
    let is_unit = next.start == from + 1 && UNITS.iter().any(|u| unit.eq_ignore_ascii_case(u));
    is_unit.then_some(next.end)
}

fn is_named(word: &str, name: &str) -> bool {
    if word.len() < name.len() {
        return false;
    }
    let word = word.trim_end_matches(['.', ':', '-']);
    let word: String =
        word.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect();
    let Some(rest) = word.strip_prefix(name) else { return false };
    rest.is_empty() || (VOLATILE.names.contains(&name) && UNITS.contains(&rest))
}
