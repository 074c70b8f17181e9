//! New ids for uses and results whose id is missing, repeated, or refused.
use super::{Fate, Pairs};
use crate::format::{Rules, is_plain};
use std::{
    collections::{HashMap, HashSet},
    iter,
};

/// How many characters of a refused id are kept: with its number it is within every provider's
/// limit.
const KEPT: usize = 28;

/// The used numbers of a stem, each with the next number that may be free.
#[derive(Default)]
struct Numbers(HashMap<usize, usize>);

impl Numbers {
    /// Takes the first free number from this one on. Used numbers are skipped once.
    fn take(&mut self, from: usize) -> usize {
        let mut free = from;
        while let Some(&next) = self.0.get(&free) {
            free = next;
        }
        let mut at = from;
        while at < free {
            at = self.0.insert(at, free + 1).unwrap_or(free);
        }
        self.0.insert(free, free + 1);
        free
    }
}

impl Pairs<'_> {
    /// A result without an id after a step with one use gets that use's id, if it is the only such
    /// result: OpenClaw pairs them in the same way.
    pub(super) fn give_ids(&mut self) {
        let mut at_home: HashMap<usize, Vec<usize>> = HashMap::new();
        for (result, found) in self.found.iter().enumerate() {
            if let Some(home) = found.home {
                at_home.entry(home).or_default().push(result);
            }
        }
        for (home, results) in at_home {
            let ([used], [result]) = (&*self.steps[home].uses, &*results) else { continue };
            let found = &mut self.found[*result];
            if found.id.is_empty() && !used.id.is_empty() {
                found.given = Some(used.id.clone());
                found.key = used.key.clone();
            }
        }
    }

    /// Makes repeated ids unique where they are refused, by appending the number of the occurrence;
    /// gives ids to uses without one, unless a name pairs them.
    pub(super) fn rename(&mut self, rules: Rules) {
        let all = self.steps.iter().flat_map(|step| &step.uses).map(|used| used.id.clone());
        let mut taken: HashSet<Box<str>> = all.collect();
        let mut count: HashMap<Box<str>, usize> = HashMap::new();
        let mut numbers: HashMap<String, Numbers> = HashMap::new();
        for used in self.steps.iter_mut().flat_map(|step| &mut step.uses) {
            let count = count.entry(used.id.clone()).or_default();
            *count += 1;
            let has_none = used.id.is_empty() && !rules.names_pair;
            let is_again = *count > 1 && rules.refuses_repeated_ids;
            if !has_none && !used.is_refused && !is_again {
                continue;
            }
            let stem = match &*used.id {
                "" => "call".into(),
                id if used.is_refused => plain(id),
                id => id.to_owned(),
            };
            let numbers = numbers.entry(stem.clone()).or_default();
            let new_id =
                iter::repeat_with(|| format!("{stem}_r{}", numbers.take(*count)).into_boxed_str())
                    .find(|id| taken.insert(id.clone()))
                    .expect("numbers don't end");
            used.new_id = Some(new_id);
        }
    }

    /// The new ids of uses and their results, by message and block.
    pub(in super::super) fn new_ids(&self) -> HashMap<(usize, usize), Box<str>> {
        let mut new_ids = HashMap::new();
        for found in self.found.iter().filter(|found| found.fate == Fate::Answers) {
            new_ids.extend(found.given.clone().map(|id| ((found.at, found.block), id)));
        }
        for used in self.steps.iter().flat_map(|step| &step.uses) {
            let Some(new_id) = &used.new_id else { continue };
            new_ids.insert((used.at, used.block), new_id.clone());
            if let Some(answer) = used.answer.map(|answer| &self.found[answer]) {
                new_ids.insert((answer.at, answer.block), new_id.clone());
            }
        }
        new_ids
    }
}

/// An id that every provider accepts and that resembles the old one.
fn plain(id: &str) -> String {
    let taken = |letter: char| {
        if letter.is_ascii() && is_plain(letter.encode_utf8(&mut [0; 4])) { letter } else { '_' }
    };
    id.chars().take(KEPT).map(taken).collect()
}

#[cfg(test)]
mod tests {
    use super::Numbers;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        /// As if each were looked for from where it begins.
        #[test]
        fn the_first_free_number_is_taken(from in vec(0..12_usize, 0..60)) {
            let (mut numbers, mut taken) = (Numbers::default(), Vec::new());
            for from in from {
                let free = (from..).find(|number| !taken.contains(number)).unwrap();
                prop_assert_eq!(numbers.take(from), free);
                taken.push(free);
            }
        }
    }
}
