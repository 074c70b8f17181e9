//! Decides whether one of two equal results is certainly a copy: where ids repeat or are missing,
//! equal results may belong to two calls, and both are kept.
use super::{Fate, Found, Pairs};
use crate::message::Message;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// A run of letters and digits counts as random, not sequential, if it is at least this long and
/// switches between letters and digits at least this often.
const RANDOM_LENGTH: usize = 8;
const RANDOM_CHANGES: usize = 3;

/// Whether an id was generated at random, so that no other call has the same: `call_0` was not.
pub(in super::super) fn is_random(id: &str) -> bool {
    let parts: Vec<_> = id.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let is_uuid = |parts: &[&str]| {
        let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
    };
    let is_mixed = |part: &&str| {
        let (one, other) = (part.bytes(), part.bytes().skip(1));
        let changes = one.zip(other).filter(|(a, b)| a.is_ascii_digit() != b.is_ascii_digit());
        part.len() >= RANDOM_LENGTH && changes.count() >= RANDOM_CHANGES
    };
    parts.iter().any(is_mixed) || parts.windows(5).any(is_uuid)
}

/// What is known about results with equal contents.
pub(super) struct Copies {
    /// How many uses each id has.
    uses: HashMap<Box<str>, usize>,
    /// For each message, how many before it hold anything other than results.
    turns: Vec<usize>,
}

impl Copies {
    pub(super) fn of(pairs: &Pairs<'_>, messages: &[&Message]) -> Self {
        let mut uses = HashMap::new();
        for used in pairs.steps.iter().flat_map(|step| &step.uses) {
            *uses.entry(used.id.clone()).or_default() += 1;
        }
        let has_no_turn =
            |message: &Message| message.body.unknown.is_none() && message.has_only_results();
        let mut turns = vec![0];
        for message in messages {
            turns.push(turns[turns.len() - 1] + usize::from(!has_no_turn(message)));
        }
        Self { uses, turns }
    }

    /// Whether one of two results with equal contents is certainly a copy of the other: they have a
    /// random id that only one use has, only results are between them, and their other members are
    /// equal.
    pub(super) fn has(&self, one: &Found<'_>, other: &Found<'_>, messages: &[&Message]) -> bool {
        let (first, last) = (one.at.min(other.at), one.at.max(other.at));
        let is_beside = first == last || self.turns[first] == self.turns[last + 1];
        let is_own = one.has_own_id && other.has_own_id && is_random(one.id);
        is_own
            && is_beside
            && self.uses.get(one.id) == Some(&1)
            && says(one, messages) == says(other, messages)
    }
}

/// Members that depend on the position and time of a result.
const PLACE: [&str; 3] = ["cache_control", "id", "timestamp"];

fn says(found: &Found<'_>, messages: &[&Message]) -> Option<Map<String, Value>> {
    let message = messages[found.at];
    let whole = message.text(&message.blocks()[found.block].span);
    let mut members: Map<String, Value> = serde_json::from_str(whole).ok()?;
    members.retain(|name, _| !PLACE.contains(&&**name));
    Some(members)
}

impl Pairs<'_> {
    /// If only one of two calls of a tool is answered, and no id tells which of them, the pairing is
    /// unknown: the result becomes text.
    pub(super) fn part_guesses(&mut self) {
        for step in self.steps.iter_mut().filter(|step| !step.is_live) {
            let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
            for (place, used) in step.uses.iter().enumerate() {
                if used.answer.is_none() {
                    waiting.entry(&*used.key.name).or_default().push(place);
                }
            }
            if waiting.is_empty() {
                continue;
            }
            let guessed = step.uses.iter().enumerate().filter_map(|(place, used)| {
                let found = &self.found[used.answer?];
                let by_id = |has_id: bool| found.has_own_id && has_id;
                let mut others = waiting.get(&*used.key.name)?.iter();
                let is_guess = !by_id(used.key.has_id)
                    && !found.is_synthetic
                    && others.any(|&other| !by_id(step.uses[other].key.has_id));
                is_guess.then_some(place)
            });
            for place in guessed.collect::<Vec<_>>() {
                let Some(result) = step.uses[place].answer.take() else { continue };
                self.found[result].fate = Fate::Text;
                self.found[result].is_guessed = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_random;

    #[test]
    fn ids_that_are_counted_up_are_not_random() {
        for id in [
            "",
            "a",
            "call_0",
            "functions.pay:0",
            "toolCall12",
            "call_20261101",
            "createPaymentV2:0",
            "call_pay_r2",
        ] {
            assert!(!is_random(id), "{id}");
        }
        for id in [
            "toolu_01A09q90qw90lq917835lq9",
            "call_a7Bq3xYz9Kd0",
            "550e8400-e29b-41d4-a716-446655440000",
            "chatcmpl-tool-1f0b7c9d2e8a4d5b8c6f7a9b0c1d2e3f",
        ] {
            assert!(is_random(id), "{id}");
        }
    }
}
