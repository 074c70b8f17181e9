//! Validates the messages of a branch one by one, and remembers where they are in the file.
use super::finding::{FileFault, FileFinding};
use crate::{
    format::Format,
    message::Message,
    validate::{Fault, Validator},
};
use std::collections::VecDeque;

/// Where a record is: its line, and its place in bytes.
type Place = (u64, u64);

/// What was found on a branch so far.
#[derive(Debug)]
pub(super) struct Walk {
    validator: Validator,
    /// Where the messages are that may still be found at fault: their blocks, then they themselves.
    places: VecDeque<(usize, Vec<Place>)>,
    pub(super) findings: Vec<FileFinding>,
}

impl Walk {
    pub(super) fn new(format: Format) -> Self {
        let validator = Validator::new(format);
        Self { validator, places: VecDeque::new(), findings: Vec::new() }
    }

    /// Validates the next message; `place` is where a block of it is, or it itself.
    pub(super) fn push(&mut self, message: &Message, place: impl Fn(Option<usize>) -> Place) {
        let blocks = 0..message.blocks().len();
        let places: Vec<_> = blocks.map(Some).chain([None]).map(place).collect();
        self.places.push_back((self.validator.len(), places));
        self.validator.push(message);
        for finding in self.validator.take_findings() {
            let at = self.places.iter().find(|(index, _)| *index == finding.message_index);
            let Some((_, places)) = at.or(self.places.back()) else { continue };
            let block = finding.block_index.unwrap_or(places.len() - 1);
            let Some(&(line, offset)) = places.get(block).or(places.last()) else { continue };
            self.findings.push(FileFinding::of_message(finding, line, offset));
        }
        for message in self.validator.take_healed() {
            self.findings.retain(|found| {
                found.fault != FileFault::Message(Fault::IncompleteUse)
                    || found.message_index != Some(message)
            });
        }
        let open = self.validator.first_waiting();
        while self.places.front().is_some_and(|(index, _)| *index < open) {
            self.places.pop_front();
        }
    }

    pub(super) fn find(&mut self, finding: FileFinding) {
        self.findings.push(finding);
    }

    /// What was found so far is seen no more.
    pub(super) fn forget(&mut self) {
        self.findings.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.validator.len()
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = &str> {
        self.validator.pending()
    }
}
