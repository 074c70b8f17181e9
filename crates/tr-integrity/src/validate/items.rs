//! What a validator remembers of a form of items, where a result may stand anywhere behind its
//! use: it can mend a fault that was found before it came.
use super::{Fault, Finding, OpenUse, Step, Validator, ids::Ids};
use crate::message::{Item, Kind, Message, Role};
use std::mem;

/// What is remembered of items.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    /// The provider knows of items that are not here.
    pub(super) continues: bool,
    /// The first reference to an item that the provider keeps: it may be a use, or a result.
    reference: Option<usize>,
    /// Each id's uses.
    uses: Ids<Place>,
    /// What answered which of them, in order.
    answers: Vec<(usize, usize)>,
    /// Where each item's id came first.
    ids: Ids,
    /// Reasoning that waits for what follows from it: the messages, and the items' ids.
    reasoning: Vec<(usize, Box<str>)>,
    /// What was found and is not so any more, since this message.
    healed: Vec<(usize, Finding)>,
    /// The uses whose findings were taken before they were healed.
    healed_late: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Place {
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
        let lacks = |&at: &usize| self.uses.what(at).result.is_none();
        let mut open = self.uses.of(id).skip_while(|at| !lacks(at)).peekable();
        let step = self.uses.what(*open.peek()?).step;
        let first = open.take_while(|at| lacks(at) && self.uses.what(*at).step == step).last()?;
        self.uses.what_mut(first).result = Some(result);
        self.answers.push((result, first));
        Some(self.uses.message(first))
    }

    /// Forgets what all but the first `len` messages have said of uses and ids.
    fn truncate(&mut self, len: usize) {
        while let Some((_, used)) = self.answers.pop_if(|(result, _)| *result >= len) {
            self.uses.what_mut(used).result = None;
        }
        self.uses.truncate(len);
        self.ids.truncate(len);
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
            None if self.items.uses.last(id).is_some() => {
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
        self.errors -= usize::from(finding.is_error());
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
        if self.items.ids.last(id).is_some() {
            return self.find_about(Fault::DuplicateItem, at, None, None, id.clone());
        }
        self.items.ids.note(id, at, ());
    }

    /// The next item's step: the one that it extends, else a new one.
    pub(super) fn extend_step(&mut self, uses: Vec<OpenUse>) {
        let message = self.len;
        let step = self.step.get_or_insert_with(|| Step { message, uses: Vec::new(), grows: true });
        for open in &uses {
            let place = Place { step: step.message, result: None };
            self.items.uses.note(&open.key.id, message, place);
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
        let last = self.items.uses.of(id).next()?;
        self.items.uses.what(last).result
    }

    /// Forgets all but the first `len` messages, but for the step, which is `replay`'s.
    pub(super) fn truncate_items(&mut self, len: usize, replay: Items) {
        self.items.truncate(len);
        self.items.reference = self.items.reference.filter(|&first| first < len);
        self.items.reasoning = replay.reasoning;
        let from = self.items.healed.partition_point(|&(since, _)| since < len);
        let sick = self.items.healed.drain(from..).map(|(_, finding)| finding);
        let sick: Vec<_> = sick.filter(|finding| finding.noticed < len).collect();
        if !sick.is_empty() {
            self.errors += sick.iter().filter(|finding| finding.is_error()).count();
            self.findings.extend(sick);
            self.findings.sort_by_key(|finding| (finding.noticed, finding.message_index));
        }
    }
}
