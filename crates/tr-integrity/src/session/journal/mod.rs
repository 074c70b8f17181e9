//! A session's changes as they happen, for a log from which it can be made again.
//!
//! What grows without bounds, the messages, incidents and archives, is noted as it happens. The
//! short lists, of checkpoints and cycles, are compared with what the log knows of them when it is
//! written: so none of their changes can be forgotten, and what came and went in between leaves no
//! trace.
mod change;
mod codec;
mod known;
mod replay;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    change::Change,
    codec::{decode, encode},
};
use self::{change::Line, known::Known};
use super::{Archive, Incident, Session};
use crate::message::Message;
use std::mem;

/// What has happened since the log was written last.
#[derive(Debug, Default)]
pub(super) struct Journal {
    changes: Vec<Change>,
    /// What the log knows of the short lists.
    known: Known,
    /// The changes are not of cycles alone, which would be begun and recorded anew.
    holds_more: bool,
}

/// A copy of a session has a history of its own, which nobody keeps.
#[derive(Debug, Default)]
pub(super) struct Kept(Option<Box<Journal>>);

impl Clone for Kept {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl Kept {
    pub(super) fn appended(&mut self, message: &Message) {
        if let Some(journal) = &mut self.0 {
            journal.changes.push(Change::Message(Line::of(message)));
        }
    }

    /// All but the first `len` of `of` messages are gone.
    pub(super) fn cut(&mut self, mut of: usize, len: usize) {
        let Some(journal) = &mut self.0 else { return };
        // What the log does not have yet, it need not have.
        while of > len && matches!(journal.changes.last(), Some(Change::Message(_))) {
            journal.changes.pop();
            of -= 1;
        }
        if of > len {
            journal.changes.push(Change::Cut(len));
        }
    }

    pub(super) fn noted(&mut self, incident: &Incident) {
        if let Some(journal) = &mut self.0 {
            journal.changes.push(Change::Incident(incident.clone()));
        }
    }

    /// The messages as they stand went to the archive.
    pub(super) fn archived(&mut self, timestamp: u64) {
        if let Some(journal) = &mut self.0 {
            journal.changes.push(Change::Archived { timestamp, messages: None });
        }
    }
}

impl Session {
    /// Keeps its changes from now on. A log that has nothing of it yet gets all of it first.
    pub(crate) fn keep_changes(&mut self, is_known: bool) {
        let mut journal = Box::<Journal>::default();
        if is_known {
            journal.known = Known::of(self);
        } else {
            journal.changes = self.opening();
        }
        self.journal = Kept(Some(journal));
    }

    /// Whether the log lacks something.
    pub(crate) fn has_changes(&self) -> bool {
        let journal = self.journal.0.as_deref();
        let lacks = |it: &Journal| !it.changes.is_empty() || it.known != Known::of(self);
        journal.is_some_and(lacks)
    }

    /// Somebody has worked on it who may have made changes that only they can make anew.
    pub(crate) fn worked(&mut self) {
        if self.has_changes()
            && let Some(journal) = &mut self.journal.0
        {
            journal.holds_more = true;
        }
    }

    /// Whether changes wait that nobody makes anew.
    pub(crate) fn holds_more(&self) -> bool {
        self.journal.0.as_ref().is_some_and(|journal| journal.holds_more)
    }

    /// What the log lacks, and whether it is more than cycles.
    pub(crate) fn take_changes(&mut self) -> (Vec<Change>, bool) {
        let Some(mut journal) = self.journal.0.take() else { return (Vec::new(), false) };
        journal.known.catch_up(self, &mut journal.changes);
        let changes = mem::take(&mut journal.changes);
        let holds_more = mem::take(&mut journal.holds_more);
        self.journal = Kept(Some(journal));
        (changes, holds_more)
    }

    /// All of it as the changes that make it.
    pub(crate) fn base(&self) -> Vec<Change> {
        let mut changes = self.opening();
        Known::default().catch_up(self, &mut changes);
        changes
    }

    /// The changes that make all but the short lists.
    fn opening(&self) -> Vec<Change> {
        let (head, tail) = self.transcript.around();
        let format = self.transcript.format();
        let opened = Change::Opened { format, head: head.into(), tail: tail.into() };
        let archived = self.archives.iter().map(|Archive { timestamp, messages }| {
            let messages = Some(messages.iter().map(Line::of).collect());
            Change::Archived { timestamp: *timestamp, messages }
        });
        let incidents = self.incidents.iter().cloned().map(Change::Incident);
        let messages = self.transcript.messages().iter().map(Line::of).map(Change::Message);
        [opened].into_iter().chain(archived).chain(incidents).chain(messages).collect()
    }
}
