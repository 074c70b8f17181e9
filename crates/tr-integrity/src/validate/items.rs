//! What a validator remembers of a form of items, where a result may stand anywhere behind its
//! use: it can mend a fault that was found before it came.
use super::{Fault, Finding, OpenUse, Severity, Step, Validator};
use crate::message::{Item, Kind, Message, Role};
use std::{collections::HashMap, mem};

/// What is remembered of items.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    /// The provider knows of items that are not here.
    pub(super) continues: bool,
    /// The first reference to an item that the provider keeps: it may be a use, or a result.
    reference: Option<usize>,
    /// Each id's uses, and what answers them.
    uses: HashMap<Box<str>, Vec<Place>>,
    /// Where each item's id came first.
    ids: HashMap<Box<str>, usize>,
    /// Reasoning that waits for what follows from it: the messages, and the items' ids.
    reasoning: Vec<(usize, Box<str>)>,
    /// What was found and is not so any more, since this message.
    healed: Vec<(usize, Finding)>,
    /// The uses whose findings were taken before they were healed.
    healed_late: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Place {
    message: usize,
    /// Where its step begins.
    step: usize,
    result: Option<usize>,
}

impl Items {
    pub(super) fn waits(&self) -> bool {
        !self.reasoning.is_empty()
    }

    pub(super) fn first_waiting(&self) -> Option<usize> {
        self.reasoning.first().map(|&(at, _)| at)
    }

    /// Gives a result to the nearest step that lacks one of this id, and there to the first use.
    fn answer(&mut self, id: &str, result: usize) -> Option<usize> {
        let places = self.uses.get_mut(id)?;
        let last = places.iter().rposition(|place| place.result.is_none())?;
        let step = places[last].step;
        let before = places[..last].iter().rev();
        let same = before.take_while(|place| place.step == step && place.result.is_none());
        let first = last - same.count();
        let place = &mut places[first];
        place.result = Some(result);
        Some(place.message)
    }

    fn forget(&mut self, message: &Message, len: usize) {
        for id in message.tool_uses().chain(message.tool_results()) {
            let Some(places) = self.uses.get_mut(id) else { continue };
            places.retain(|place| place.message < len);
            for place in places.iter_mut() {
                place.result = place.result.filter(|&result| result < len);
            }
            if places.is_empty() {
                self.uses.remove(id);
            }
        }
        if let Some(item) = message.item()
            && self.ids.get(&item.id).is_some_and(|&first| first >= len)
        {
            self.ids.remove(&item.id);
        }
    }
}

impl Validator {
    /// Checks an item. What concerns earlier ones is found first.
    pub(super) fn check_item(&mut self, message: &Message) {
        let result = message.blocks().iter().find_map(|block| match &block.kind {
            Kind::Result { id, .. } => Some(id),
            _ => None,
        });
        if let Some(id) = result {
            self.note_item(message);
            return self.check_result(id);
        }
        if !self.extends_step(message) {
            let step = self.step.take();
            if self.items.reference.is_none() {
                self.close(step, Fault::IncompleteUse);
            }
        }
        self.check_reasoning(message);
        self.note_item(message);
    }

    fn check_result(&mut self, id: &str) {
        let at = self.len;
        let step = self.step.as_mut();
        let live = step.map(|step| {
            step.grows = false;
            step.message
        });
        match self.items.answer(id, at) {
            Some(message) if live.is_some_and(|start| message >= start) => {
                let uses = self.step.iter_mut().flat_map(|step| &mut step.uses);
                uses.filter(|open| open.message == message).for_each(|open| open.results += 1);
            }
            Some(message) => self.heal(message),
            None if self.items.uses.contains_key(id) => {
                self.find(Fault::SeveralResults, at, None, Some(id));
            }
            None if self.items.continues || self.items.reference.is_some() => {}
            None => self.find(Fault::OrphanedResult, at, None, Some(id)),
        }
    }

    /// The use at `message` has its result after all.
    fn heal(&mut self, message: usize) {
        let is_meant = |finding: &Finding| {
            finding.fault == Fault::IncompleteUse && finding.message_index == message
        };
        let Some(at) = self.findings.iter().rposition(is_meant) else {
            return self.items.healed_late.push(message);
        };
        let finding = self.findings.remove(at);
        self.errors -= usize::from(finding.severity == Severity::Error);
        self.items.healed.push((self.len, finding));
    }

    /// The messages of uses that have their results after all, though it was found, and taken,
    /// that they have not. They are remembered no more.
    pub(crate) fn take_healed(&mut self) -> Vec<usize> {
        mem::take(&mut self.items.healed_late)
    }

    /// Reasoning waits, past results, for what the model made of it.
    fn check_reasoning(&mut self, message: &Message) {
        let is_reasoning = message.blocks().iter().any(|block| block.kind == Kind::Reasoning);
        if is_reasoning {
            let id = message.item().map_or_else(Box::default, |item| item.id.clone());
            return self.items.reasoning.push((self.len, id));
        }
        let waiting = mem::take(&mut self.items.reasoning);
        if matches!(message.role(), Role::System | Role::User) {
            for (at, id) in waiting {
                self.find_about(Fault::LoneReasoning, at, None, None, id);
            }
        }
    }

    fn note_item(&mut self, message: &Message) {
        let at = self.len;
        let Some(Item { id, .. }) = message.item() else { return };
        if message.blocks().iter().any(|block| block.kind == Kind::Reference) {
            self.items.reference.get_or_insert(at);
        }
        if self.items.ids.contains_key(id) {
            return self.find_about(Fault::DuplicateItem, at, None, None, id.clone());
        }
        self.items.ids.insert(id.clone(), at);
    }

    /// The next item's step: the one that it extends, else a new one.
    pub(super) fn extend_step(&mut self, uses: Vec<OpenUse>) {
        let message = self.len;
        let step = self.step.get_or_insert_with(|| Step { message, uses: Vec::new(), grows: true });
        for open in &uses {
            let place = Place { message, step: step.message, result: None };
            self.items.uses.entry(open.key.id.clone()).or_default().push(place);
        }
        step.uses.extend(uses);
    }

    /// Whether `message` belongs to the step that is live: the model goes on, and no result is
    /// there yet.
    pub(crate) fn extends_step(&self, message: &Message) -> bool {
        let grows = self.step.as_ref().is_some_and(|step| step.grows);
        grows && message.role() == Role::Assistant
    }

    /// Where the last use of `id` has its result, if that may be anywhere.
    pub(crate) fn result_of(&self, id: &str) -> Option<usize> {
        self.items.uses.get(id)?.last()?.result
    }

    /// Forgets all but the first `len` of `messages`, but for the step, which is `replay`'s.
    pub(super) fn truncate_items(&mut self, messages: &[Message], len: usize, replay: Items) {
        messages[len..].iter().for_each(|message| self.items.forget(message, len));
        self.items.reference = self.items.reference.filter(|&first| first < len);
        self.items.reasoning = replay.reasoning;
        let from = self.items.healed.partition_point(|&(since, _)| since < len);
        let sick = self.items.healed.drain(from..).map(|(_, finding)| finding);
        self.findings.extend(sick.filter(|finding| finding.noticed < len));
        self.findings.sort_by_key(|finding| (finding.noticed, finding.message_index));
    }
}
