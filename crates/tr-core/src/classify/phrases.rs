//! Phrases that people and programs write into error messages, each with its meaning, and the
//! index in which `message.rs` looks them up.
//!
//! Words are matched whole and whatever their case. Phrases are separated by `|` or by lines;
//! `..` stands for up to six words.
mod failures;
mod refusals;
mod vague;

use super::{Kind, errno, exception, provider, scan::Rank};
use std::{cmp::Ordering, iter, sync::LazyLock};

/// One phrase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    first: &'static str,
    /// The words after the first.
    pub(super) rest: &'static str,
    /// The second word, where it must follow at once: most rules fail by it.
    second: Option<&'static str>,
    pub(super) rank: Rank,
    pub(super) kind: Kind,
}

/// All phrases by their first words; of those that begin alike, the longer ones first.
static INDEX: LazyLock<Box<[Rule]>> = LazyLock::new(|| {
    let tables = [
        (Rank::Exact, provider::IDENTIFIERS),
        (Rank::Named, provider::GENERIC),
        (Rank::Named, exception::EXCEPTIONS),
        (Rank::Refusal, refusals::REFUSALS),
        (Rank::Failure, failures::FAILURES),
        (Rank::Broad, failures::BROAD),
        (Rank::Vague, vague::VAGUE),
        (Rank::Hint, vague::HINTS),
    ];
    let groups = tables.into_iter().flat_map(|(rank, groups)| iter::repeat(rank).zip(groups));
    let phrases = groups.flat_map(|(rank, (kind, phrases))| {
        phrases.split(['|', '\n']).map(move |phrase| (rank, *kind, phrase.trim_ascii()))
    });
    let names = errno::NAMES.iter().map(|(name, kind)| (Rank::Exact, *kind, *name));
    let mut rules: Box<[Rule]> = phrases
        .chain(names)
        .map(|(rank, kind, phrase)| {
            let (first, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
            let second = rest.split(' ').next().filter(|word| !["", ".."].contains(word));
            Rule { first, rest, second, rank, kind }
        })
        .collect();
    rules.sort_by(|a, b| a.first.cmp(b.first).then_with(|| b.rest.len().cmp(&a.rest.len())));
    rules
});

/// All phrases: the first word, and the rest.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    INDEX.iter().map(|rule| (rule.first, rule.rest))
}

/// The rules that begin with `word` and may go on with `next`, the longest first.
pub(super) fn beginning_with(word: &str, next: &str) -> impl Iterator<Item = &'static Rule> {
    let cmp = |rule: &Rule| {
        let lower = word.bytes().map(|byte| byte.to_ascii_lowercase());
        rule.first.bytes().cmp(lower)
    };
    let rules = &**INDEX;
    let from = rules.partition_point(|rule| cmp(rule) == Ordering::Less);
    rules[from..]
        .iter()
        .take_while(move |rule| rule.first.eq_ignore_ascii_case(word))
        .filter(move |rule| rule.second.is_none_or(|second| second.eq_ignore_ascii_case(next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn phrases_are_words_and_stand_in_one_place() {
        let mut seen = HashSet::new();
        for rule in INDEX.iter() {
            assert!(seen.insert((rule.first, rule.rest)), "{rule:?} is there twice");
            let is_word = |word: &str| {
                !word.is_empty()
                    && word.bytes().all(|byte| {
                        byte.is_ascii_lowercase()
                            || byte.is_ascii_digit()
                            || matches!(byte, b'_' | b'\'')
                    })
            };
            assert!(is_word(rule.first), "{rule:?}");
            let mut rest = rule.rest.split(' ').filter(|word| !word.is_empty());
            assert!(rest.all(|word| word == ".." || is_word(word)), "{rule:?}");
            assert!(!rule.rest.ends_with(".."), "{rule:?}");
        }
    }
}
