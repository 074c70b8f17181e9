//! Validates the messages of a branch one by one, and tracks their positions in the file.
use super::finding::{FileFault, FileFinding};
use crate::{
    format::Format,
    message::Message,
    validate::{Fault, Validator},
};
use std::collections::{HashMap, VecDeque};

/// A record's line and byte offset.
type Place = (u64, u64);

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
    validator: Validator,
    /// The positions of messages that may still get a finding, with their blocks.
    places: VecDeque<Places>,
    /// The index of the first of these messages.
    first: usize,
    /// The findings; `None` for those that were taken back.
    findings: Vec<Option<FileFinding>>,
    found: usize,
    /// The form in which the last answer was requested, in a form that several providers use.
    asked: Option<Format>,
    /// Its API, if no form is known for it.
    unknown_api: Option<Box<str>>,
    /// The findings of uses without results, built once one of them is taken back.
    incomplete: Option<HashMap<usize, usize>>,
}

impl Walk {
    pub(super) fn new(format: Format, members: bool) -> Self {
        let validator = Validator::new(format);
        let validator = if members { validator.with_members() } else { validator };
        let (places, findings) = (VecDeque::new(), Vec::new());
        let (first, found, asked, unknown_api, incomplete) = (0, 0, None, None, None);
        Self { validator, places, first, findings, found, asked, unknown_api, incomplete }
    }

    /// Continues after unknown messages, which may hold the uses of later results.
    pub(super) fn after_unknown(self) -> Self {
        Self { validator: self.validator.after_unknown(), ..self }
    }

    /// Validates the next message; `place` gives the position of a block, or of the message itself.
    pub(super) fn push(&mut self, message: &Message, place: impl Fn(Option<usize>) -> Place) {
        let (blocks, at) = (0..message.blocks().len(), place(None));
        let is_there = blocks.clone().all(|block| place(Some(block)) == at);
        let blocks = if is_there { Vec::new() } else { blocks.map(Some).map(place).collect() };
        if self.places.is_empty() {
            self.first = self.validator.len();
        }
        self.places.push_back(Places { message: at, blocks });
        match (message.answered_in(), message.unknown_api()) {
            (Some(format), _) => (self.asked, self.unknown_api) = (Some(format), None),
            (None, Some(api)) => self.unknown_api = Some(api.into()),
            (None, None) => {}
        }
        self.validator.push(message);
        for finding in self.validator.take_findings() {
            let at = finding.message_index.checked_sub(self.first);
            let at = at.and_then(|at| self.places.get(at));
            let Some(Places { message, blocks }) = at.or(self.places.back()) else { continue };
            let block = finding.block_index.and_then(|block| blocks.get(block));
            let &(line, offset) = block.unwrap_or(message);
            self.find(FileFinding::of_message(finding, line, offset));
        }
        for message in self.validator.take_healed() {
            self.heal(message);
        }
        let open = self.validator.first_waiting();
        while self.first < open && self.places.pop_front().is_some() {
            self.first += 1;
        }
    }

    pub(super) fn find(&mut self, finding: FileFinding) {
        if let Some(incomplete) = &mut self.incomplete {
            incomplete.extend(lacks_result(&finding).map(|message| (message, self.findings.len())));
        }
        self.findings.push(Some(finding));
        self.found += 1;
    }

    /// Takes back the finding of a use in this message: its result was found.
    fn heal(&mut self, message: usize) {
        let findings = &mut self.findings;
        let incomplete = self.incomplete.get_or_insert_with(|| {
            let found = findings.iter().enumerate();
            found.filter_map(|(at, it)| Some((lacks_result(it.as_ref()?)?, at))).collect()
        });
        let gone = incomplete.remove(&message).and_then(|at| findings[at].take());
        self.found -= usize::from(gone.is_some());
    }

    /// Forgets the findings: the messages so far are hidden.
    pub(super) fn forget(&mut self) {
        (self.findings, self.incomplete, self.found) = (Vec::new(), None, 0);
    }

    /// The findings that remain, for a provider that takes the form `asked`, else for the one of
    /// the last answer.
    pub(super) fn take_findings(
        &mut self,
        asked: Option<Format>,
    ) -> impl Iterator<Item = FileFinding> {
        (self.incomplete, self.found) = (None, 0);
        let asked = asked.or(self.asked);
        let found = std::mem::take(&mut self.findings).into_iter().flatten();
        found.map(move |finding| finding.asked(asked))
    }

    /// Whether no finding remains.
    pub(super) const fn is_clean(&self) -> bool {
        self.found == 0
    }

    /// The API of the last answer, if no form is known for it.
    pub(super) fn take_unknown_api(&mut self) -> Option<Box<str>> {
        self.unknown_api.take()
    }

    pub(super) fn len(&self) -> usize {
        self.validator.len()
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = &str> {
        self.validator.pending()
    }
}

/// The message of a use without a result, if that is the finding.
fn lacks_result(finding: &FileFinding) -> Option<usize> {
    let lacks = finding.fault == FileFault::Message(Fault::IncompleteUse);
    finding.message_index.filter(|_| lacks)
}
