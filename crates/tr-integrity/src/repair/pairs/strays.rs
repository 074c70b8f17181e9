//! Results that answer nothing, and what those keep that take their place.
use super::{Fate, Found, Pairs, copies::Copies};
use crate::message::Message;
use std::collections::HashMap;

impl Pairs<'_> {
    /// What answers nothing becomes text, unless it is certainly a copy of what does, or made up.
    pub(super) fn settle_strays(&mut self, messages: &[&Message]) {
        let is_stray = |found: &Found<'_>| matches!(found.fate, Fate::Stray | Fate::Again);
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

    /// What stands at no use here answers one that only the provider knows.
    pub(in super::super) fn keep_strays(&mut self) {
        for found in self.found.iter_mut().filter(|found| found.home.is_none()) {
            found.fate = Fate::Answers;
        }
    }

    /// The marks for the provider's cache that results get, by message and block: each of what it
    /// takes the place of.
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
