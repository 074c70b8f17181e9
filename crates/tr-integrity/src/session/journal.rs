//! Collects a session's changes for a log from which the session can be replayed.
//!
//! Changes of the unbounded lists (messages, incidents, archives) are noted as they happen. The
//! short lists (checkpoints, cycles) are compared with the log's state when it is written: so no
//! change is missed, and items that were added and removed in between are not written.
mod change;
mod codec;
mod known;
mod replay;
#[cfg(test)]
mod tests;

pub(super) use self::change::SessionJournal;
use self::change::{Journal, Known, Line};
pub(crate) use self::{
    change::{Batch, Change},
    codec::{decode, encode},
};
use super::{Archive, Session, incidents::keep};
use crate::store::Revision;
use std::mem;

/// How many entries of its log a session knows to be in it.
const KNOWN_ENTRIES: usize = 256;

impl Session {
    /// An entry of the log is in this copy.
    pub(crate) fn holds_entry(&mut self, revision: Revision) {
        keep(&mut self.revisions, KNOWN_ENTRIES, revision);
    }

    /// Whether this entry of the log is in this copy; of old ones that is not known.
    pub(crate) fn has_entry(&self, revision: Revision) -> bool {
        self.revisions.contains(&revision)
    }

    /// Starts to collect changes. A log that is empty gets the whole session first.
    pub(crate) fn keep_changes(&mut self, is_known: bool) {
        let mut journal = Box::<Journal>::default();
        if is_known {
            journal.known = Known::of(self);
        } else {
            journal.changes = self.opening();
        }
        self.journal = SessionJournal(Some(journal));
    }

    /// Whether there are changes to write.
    pub(crate) fn has_changes(&self) -> bool {
        let journal = self.journal.0.as_deref();
        let lacks = |it: &Journal| !it.changes.is_empty() || it.known != Known::of(self);
        journal.is_some_and(lacks)
    }

    /// Marks the pending changes as the caller's: after a conflict, no call would make them again.
    pub(crate) fn worked(&mut self) {
        if self.has_changes()
            && let Some(journal) = &mut self.journal.0
        {
            journal.holds_more = true;
        }
    }

    /// Whether changes are pending that no call would make again after a conflict.
    pub(crate) fn holds_more(&self) -> bool {
        self.journal.0.as_ref().is_some_and(|journal| journal.holds_more)
    }

    /// The batch that the changes until now are in, or will be.
    pub(crate) fn next_batch(&self) -> u64 {
        let taken = self.journal.0.as_ref().map_or(0, |journal| journal.batches);
        taken + u64::from(self.has_changes())
    }

    /// Takes the pending changes, if there are any.
    pub(crate) fn take_changes(&mut self) -> Option<Batch> {
        let mut journal = self.journal.0.take()?;
        journal.known.catch_up(self, &mut journal.changes);
        let changes = mem::take(&mut journal.changes);
        let holds_more = mem::take(&mut journal.holds_more);
        journal.batches += u64::from(!changes.is_empty());
        let number = journal.batches;
        self.journal = SessionJournal(Some(journal));
        (!changes.is_empty()).then_some(Batch { changes, holds_more, number })
    }

    /// The changes that recreate the whole session.
    pub(crate) fn base(&self) -> Vec<Change> {
        let mut changes = self.opening();
        Known::default().catch_up(self, &mut changes);
        let merged = self.revisions.iter().map(|entry| (entry.number, entry.stamp));
        changes.push(Change::Merged(merged.collect()));
        changes
    }

    /// The changes that recreate all but the short lists.
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
