//! The ids that uses and results get: where one is missing, there twice, or refused.
use super::{Fate, Pairs};
use crate::format::{Rules, is_plain};
use std::{
    collections::{HashMap, HashSet},
    iter,
};

/// How much of a refused id is kept: with its number it is shorter than any provider asks.
const KEPT: usize = 28;

/// The numbers of a stem that are taken, each with the next that may be free.
#[derive(Default)]
struct Numbers(HashMap<usize, usize>);

impl Numbers {
    /// Takes the first number from this one on that is free. Those in between are passed over once.
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
    /// A result without an id behind a step of one use belongs to that, if it is the only one there:
    /// so OpenClaw pairs them, too.
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

    /// Makes repeated ids unique where they are refused, by the number of the occurrence; and gives
    /// ids to uses that have none, where no name stands for it.
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

    /// What uses and their results are called now, by message and block.
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

/// An id that every provider takes, and that tells which it was.
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
