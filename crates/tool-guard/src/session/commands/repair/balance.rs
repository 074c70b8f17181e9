//! Compares a session before and after a repair to find losses that the repair does not report.
use crate::session::document::Document;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The limit for removed bytes that belong to no record, as a percentage.
const MOST_PERCENT: u64 = 1;

/// How far ahead a record is looked for among those after the repair.
const AHEAD: usize = 64;

/// The changes of records that a repair does not report. Records are lines, or messages of a JSON
/// text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Balance {
    /// Records of which bytes are missing, by their lines if they have any.
    pub(crate) lost: Vec<u64>,
    /// Records that kept all of their bytes and got more.
    pub(crate) extended: Vec<u64>,
}

/// Why a repair is not done without `--force`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It would change these records without reporting it.
    Unreported(Vec<u64>),
    /// It would remove this many of the bytes, which are neither records nor NULs.
    Bytes { out: u64, of: u64 },
}

impl Balance {
    /// Compares a session before and after a repair; `reported` are the records that the repair
    /// reports.
    pub(crate) fn of(
        before: &dyn Document,
        after: &dyn Document,
        reported: &BTreeSet<u64>,
    ) -> Self {
        let after = after.numbered().map(|(_, text)| text);
        let mut balance = of_texts(before.numbered(), after, reported);
        for record in &mut balance.lost {
            *record = before.line_of(*record).unwrap_or(*record);
        }
        balance
    }
}

/// Finds the changes of records, each given by its number and text.
fn of_texts<'t>(
    before: impl Iterator<Item = (u64, &'t [u8])>,
    mut after: impl Iterator<Item = &'t [u8]>,
    reported: &BTreeSet<u64>,
) -> Balance {
    // Of equal records, those that are not reported are matched first.
    let (mut named, mut others, mut new) = (Vec::new(), Vec::new(), Vec::new());
    // Nearly all of them stay in their order: only the rest is kept and hashed.
    let mut ahead = VecDeque::new();
    for (at, text) in before {
        if reported.contains(&at) {
            named.push((at, text));
            continue;
        }
        ahead.extend(after.by_ref().take(AHEAD - ahead.len()));
        match ahead.iter().position(|new| *new == text) {
            Some(place) => new.extend(ahead.drain(..=place).take(place)),
            None => others.push((at, text)),
        }
    }
    new.extend(ahead.into_iter().chain(after));
    let mut left: HashMap<&[u8], usize> = HashMap::new();
    new.iter().for_each(|text| *left.entry(text).or_default() += 1);
    let mut is_left = |text: &[u8]| match left.get_mut(text) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let missing = others.into_iter().chain(named);
    let missing = missing.filter(|(at, text)| !is_left(text) && !reported.contains(at));
    let missing: Vec<_> = missing.collect();
    new.retain(|text| is_left(text));
    let mut balance = Balance::default();
    for (at, text) in missing {
        match new.iter().position(|new| is_within(text, new)) {
            Some(place) => {
                new.remove(place);
                balance.extended.push(at);
            }
            None => balance.lost.push(at),
        }
    }
    balance
}

/// Whether `new` contains all bytes of `text`, in their order.
fn is_within(text: &[u8], new: &[u8]) -> bool {
    let mut new = new.iter();
    text.iter().all(|byte| new.any(|other| other == byte))
}

/// Why a repair is not done without `--force`: it has unreported losses, or removes more than one
/// percent of the bytes.
pub(crate) fn refusal(balance: &Balance, dropped: u64, bytes: u64) -> Option<Refusal> {
    if !balance.lost.is_empty() {
        return Some(Refusal::Unreported(balance.lost.clone()));
    }
    let is_much = dropped.saturating_mul(100) > bytes.saturating_mul(MOST_PERCENT);
    is_much.then_some(Refusal::Bytes { out: dropped, of: bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balance(before: &[&str], after: &[&str], reported: &[u64]) -> Balance {
        let before = (0..).zip(before.iter().map(|text| text.as_bytes()));
        let after = after.iter().map(|text| text.as_bytes());
        of_texts(before, after, &reported.iter().copied().collect())
    }

    #[test]
    fn what_is_missing_and_not_named_is_lost() {
        let (a, b, c) = (r#"{"a":1}"#, r#"{"b":2}"#, r#"{"c":3}"#);
        assert_eq!(balance(&[a, b, c], &[a, c, b], &[]), Balance::default());
        assert_eq!(balance(&[a, b, c], &[a, c], &[1]), Balance::default());
        assert_eq!(balance(&[a, b, c], &[a, c], &[0]).lost, [1]);
        assert_eq!(balance(&[a, a, b], &[a, b], &[]).lost, [1], "twice is not once");
        assert_eq!(balance(&[a, a, b], &[a, b], &[0]), Balance::default(), "the other stays");
        assert_eq!(balance(&[a, b], &[a, r#"{"b":3}"#], &[]).lost, [1]);
    }

    #[test]
    fn what_says_more_is_told_and_not_lost() {
        let said = r#"{"role":"user","content":"so?"}"#;
        let more = r#"{"role":"user","content":[{"type":"result"},{"text":"so?"}]}"#;
        let found = balance(&[said], &[more], &[]);
        assert_eq!((found.extended, found.lost), (vec![0], vec![]));
        // One that says more stands for one, not for two.
        assert_eq!(balance(&[said, said], &[more], &[]).lost, [1]);
        assert_eq!(balance(&[more], &[said], &[]).lost, [0]);
    }

    #[test]
    fn more_than_a_hundredth_is_refused() {
        let whole = Balance::default();
        assert_eq!(refusal(&whole, 10, 1_000), None);
        assert_eq!(refusal(&whole, 11, 1_000), Some(Refusal::Bytes { out: 11, of: 1_000 }));
        let lost = Balance { lost: vec![3], ..Balance::default() };
        assert_eq!(refusal(&lost, 0, 1_000), Some(Refusal::Unreported(vec![3])));
    }
}
