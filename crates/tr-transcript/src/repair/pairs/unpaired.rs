//! Unpaired results, and the marks that their replacements keep.
use super::{Fate, Found, Pairs, copies::Copies};
use crate::message::Message;
use std::collections::HashMap;

impl Pairs<'_> {
    /// Turns unpaired results into text; removes those that a repair added or that are certainly
    /// copies.
    pub(super) fn settle_strays(&mut self, messages: &[&Message]) {
        let is_stray = |found: &Found<'_>| matches!(found.fate, Fate::Unpaired | Fate::Duplicate);
        if !self.found.iter().any(is_stray) {
            return;
        }
        let copies = Copies::of(self, messages);
        let answers = self.found.iter().enumerate().filter(|(_, it)| it.fate == Fate::Answers);
        let answers: HashMap<(&str, Option<&str>), usize> =
            answers.map(|(at, found)| ((found.id, found.content), at)).collect();
        for result in 0..self.found.len() {
            let found = &self.found[result];
            if !is_stray(found) {
                continue;
            }
            let same = answers.get(&(found.id, found.content)).copied();
            let same = same.filter(|&same| copies.has(found, &self.found[same], messages));
            let goes = found.is_synthetic || same.is_some();
            self.found[result].fate = if goes { Fate::Drop } else { Fate::Text };
            if let Some(same) = same {
                self.found[same].instead_of.push(result);
            }
        }
    }

    /// A result without a step here answers a use that only the provider stores.
    pub(in super::super) fn keep_strays(&mut self) {
        for found in self.found.iter_mut().filter(|found| found.home.is_none()) {
            found.fate = Fate::Answers;
        }
    }

    /// The cache marks that results inherit from those they replace, by message and block.
    pub(in super::super) fn marked<'m>(
        &self,
        messages: &[&'m Message],
    ) -> HashMap<(usize, usize), Vec<&'m str>> {
        let text = |&was: &usize| {
            let Found { at, block, .. } = self.found[was];
            messages[at].text(&messages[at].blocks()[block].span)
        };
        let heirs = self.found.iter().filter(|found| !found.instead_of.is_empty());
        let marked = heirs
            .map(|found| ((found.at, found.block), found.instead_of.iter().map(text).collect()));
        marked.collect()
    }
}
