//! The changes of a session since its log was written, and what the log has.
use super::change::{Change, Line};
use crate::session::{
    cycle::{CycleState, Used},
    results::Incident,
};
use tr_transcript::Message;

/// The changes since the log was last written.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) changes: Vec<Change>,
    /// The log's state of the short lists.
    pub(super) known: Known,
    /// Whether there are changes other than those of cycles, which would be made again after a
    /// conflict.
    pub(super) holds_more: bool,
}

/// The journal of a session. A clone of the session has none: its changes are not written.
#[derive(Debug, Default)]
pub(in super::super) struct Kept(pub(super) Option<Box<Journal>>);

impl Clone for Kept {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl Kept {
    pub(in super::super) fn appended(&mut self, message: &Message) {
        if let Some(journal) = &mut self.0 {
            journal.changes.push(Change::Message(Line::of(message)));
        }
    }

    /// Notes that of `of` messages only the first `len` are left.
    pub(in super::super) fn cut(&mut self, mut of: usize, len: usize) {
        let Some(journal) = &mut self.0 else { return };
        // A message that was not written yet is dropped from the changes.
        while of > len && matches!(journal.changes.last(), Some(Change::Message(_))) {
            journal.changes.pop();
            of -= 1;
        }
        if of > len {
            journal.changes.push(Change::Cut(len));
        }
    }

    pub(in super::super) fn noted(&mut self, incident: &Incident) {
        if let Some(journal) = &mut self.0 {
            journal.changes.push(Change::Incident(incident.clone()));
        }
    }

    /// Notes that the current messages were archived.
    pub(in super::super) fn archived(&mut self, timestamp: u64) {
        if let Some(journal) = &mut self.0 {
            journal.changes.push(Change::Archived { timestamp, messages: None });
        }
    }
}

/// The log's state of checkpoints, cycles and recorded cycles, each in the order of its number.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Known {
    pub(super) checkpoints: Vec<(u64, bool)>,
    pub(super) cycles: Vec<(u64, Stage)>,
    pub(super) done: Vec<(u64, Option<usize>)>,
    pub(super) checkpoints_made: u64,
    pub(super) cycles_begun: u64,
}

/// The parts of a cycle that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) state: CycleState,
    pub(super) abandoned: bool,
    pub(super) holds: bool,
    pub(super) used: Used,
}
