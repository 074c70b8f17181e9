//! Validates the messages of a branch one by one, and tracks their positions in the file.
use super::{finding::FileFinding, located::Place};
use crate::{
    format::{Applies, Format},
    message::Message,
    validate::Validator,
};
use std::{collections::VecDeque, mem};

/// The position of a message.
#[derive(Debug)]
struct Places {
    message: Place,
    /// The position of each block, if they are not all in one record.
    blocks: Vec<Place>,
}

/// The validation of a branch so far.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) validator: Validator,
    /// The positions of messages that may still get a finding, with their blocks.
    places: VecDeque<Places>,
    /// The index of the first of these messages.
    first: usize,
    /// The position of each of the validator's findings, including those that it took back.
    found: Vec<Place>,
    /// Where each message begins, if that is noted.
    pub(super) noted: Option<Vec<u64>>,
    /// The findings of the file's own.
    pub(super) others: Vec<FileFinding>,
    /// The form in which the last answer was requested, in a form that several providers use.
    asked: Option<Format>,
    /// Its API, if no form is known for it.
    pub(super) unknown_api: Option<Box<str>>,
}

impl Walk {
    pub(super) fn new(format: Format, members: Option<Applies>, notes: bool) -> Self {
        let validator = Validator::new(format).checking(members);
        let (places, found, others) = (VecDeque::new(), Vec::new(), Vec::new());
        let noted = notes.then(Vec::new);
        Self { validator, places, first: 0, found, noted, others, asked: None, unknown_api: None }
    }

    /// Validates the next message; `place` gives the position of a block, or of the message itself.
    pub(super) fn push(&mut self, message: &Message, place: impl Fn(Option<usize>) -> Place) {
        let (blocks, at) = (0..message.blocks().len(), place(None));
        self.noted.iter_mut().for_each(|noted| noted.push(at.offset));
        let is_there = blocks.clone().all(|block| place(Some(block)) == at);
        let blocks = if is_there { Vec::new() } else { blocks.map(Some).map(place).collect() };
        if self.places.is_empty() {
            self.first = self.validator.len();
        }
        self.places.push_back(Places { message: at, blocks });
        match (message.body.answered_in, &message.body.unknown_api) {
            (Some(format), _) => (self.asked, self.unknown_api) = (Some(format), None),
            (None, Some(api)) => self.unknown_api = Some(api.clone()),
            (None, None) => {}
        }
        self.validator.push(message);
        for finding in self.validator.findings.from(self.found.len()) {
            let at = finding.message_index.checked_sub(self.first);
            let at = at.and_then(|at| self.places.get(at));
            let Some(Places { message, blocks }) = at.or(self.places.back()) else { continue };
            let block = finding.block_index.and_then(|block| blocks.get(block));
            self.found.push(*block.unwrap_or(message));
        }
        let open = self.validator.first_waiting();
        while self.first < open && self.places.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Forgets the findings: the messages so far are hidden.
    pub(super) fn forget(&mut self) {
        drop(self.validator.findings.take());
        (self.found, self.others) = (Vec::new(), Vec::new());
    }

    /// The findings that remain, for a provider that takes the form `asked`, else for the one of
    /// the last answer.
    pub(super) fn take_findings(
        &mut self,
        asked: Option<Format>,
    ) -> impl Iterator<Item = FileFinding> {
        let asked = asked.or(self.asked);
        let found = self.validator.findings.take().into_iter().zip(mem::take(&mut self.found));
        let left = found.filter_map(move |(finding, at)| Some((finding?.asked(asked), at)));
        let left = left.map(|(finding, at)| FileFinding::of_message(finding, at.line, at.offset));
        left.chain(mem::take(&mut self.others))
    }
}
