//! Validates items: a result may be anywhere after its use, so it can resolve an earlier finding.
use super::{
    Fault, Validator,
    step::{OpenUse, Step},
};
use crate::message::{Item, Kind, Message, Role};
use std::mem;

impl Validator {
    /// Checks an item; findings about earlier items come first.
    pub(super) fn check_item(&mut self, message: &Message) {
        if let Some(id) = message.tool_results().next() {
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
                self.step.iter_mut().for_each(|step| step.answer_in(message));
            }
            // Its finding was early.
            Some(message) => self.findings.take_back(message, at),
            None if self.items.uses.last(id).is_some() => {
                self.report(Fault::SeveralResults, at, None, Some(id));
            }
            None if self.items.continues || self.items.reference.is_some() => {}
            None => {
                self.report(Fault::OrphanedResult, at, None, Some(id));
            }
        }
    }

    /// Reasoning waits for the model's output; results do not count.
    fn check_reasoning(&mut self, message: &Message) {
        if let Some(id) = reasoning(message) {
            return self.items.reasoning.push((self.len, id));
        }
        let waiting = mem::take(&mut self.items.reasoning);
        if matches!(message.role(), Role::System | Role::User) {
            for (at, id) in waiting {
                self.report(Fault::LoneReasoning, at, None, None).about = id;
            }
        }
    }

    fn note_item(&mut self, message: &Message) {
        let at = self.len;
        let Some(Item { id, .. }) = message.item() else { return };
        if message.blocks().iter().any(|block| block.kind == Kind::Reference) {
            self.items.reference.get_or_insert(at);
        }
        if self.items.ids.note(id, at, ()) {
            self.report(Fault::DuplicateItem, at, None, None).about = id.clone();
        }
    }

    /// Extends the current step, or begins a new one.
    pub(super) fn extend_step(&mut self, uses: Vec<OpenUse>) {
        let message = self.len;
        let step = self.step.get_or_insert_with(|| Step::new(message, true));
        for open in &uses {
            self.items.note(&open.key.id, message, step.message);
        }
        step.extend(uses);
    }

    /// Whether `message` belongs to the live step: the model continues, and there is no result yet.
    #[doc(hidden)]
    pub fn extends_step(&self, message: &Message) -> bool {
        let grows = self.step.as_ref().is_some_and(|step| step.grows);
        grows && message.role() == Role::Assistant
    }

    /// The message of the live tail whose use of `id` waits for its result.
    #[doc(hidden)]
    pub fn pending_at(&self, id: &str) -> Option<usize> {
        self.step.as_ref()?.waiting_with(id).map(|open| open.message)
    }

    /// The messages that use `id`, the last first.
    #[doc(hidden)]
    pub fn uses_of(&self, id: &str) -> impl Iterator<Item = usize> {
        self.uses.of(id).map(|at| self.uses.message(at))
    }

    /// The index of the result of the use of `id` in a message, if results may be anywhere.
    pub(crate) fn answer_to(&self, used: usize, id: &str) -> Option<usize> {
        let mut uses = self.items.uses.of(id);
        let at = uses.find(|&at| self.items.uses.message(at) == used)?;
        self.items.uses.what(at).result
    }

    /// Removes all but these messages, except for the step.
    pub(super) fn truncate_items(&mut self, messages: &[Message]) {
        self.items.truncate(messages.len());
        self.items.reference = self.items.reference.filter(|&first| first < messages.len());
        self.items.reasoning.clear();
        for (at, message) in messages.iter().enumerate().rev() {
            match reasoning(message) {
                Some(id) => self.items.reasoning.push((at, id)),
                None if message.tool_results().next().is_some() => {}
                None => break,
            }
        }
        self.items.reasoning.reverse();
    }
}

/// The id of a reasoning item.
fn reasoning(message: &Message) -> Option<Box<str>> {
    let is_reasoning = message.blocks().iter().any(|block| block.kind == Kind::Reasoning);
    is_reasoning.then(|| message.item().map_or_else(Box::default, |item| item.id.clone()))
}
