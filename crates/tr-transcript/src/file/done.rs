//! The parts of a [`FilePlan`](super::FilePlan): actions, losses and removed bytes, and how those of
//! separately repaired parts of a file are joined.
use super::records::{SkipReason, Skipped};
use crate::repair::{Loss, RepairAction};
use std::fmt;

/// A line number, and the id of a call of unknown outcome that the line names.
pub(super) type Named = (u64, Box<str>);

/// One action of a repair of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileAction {
    /// What it does.
    pub action: FileActionKind,
    /// On which line, from 1, of the original file; `None` for a new line.
    pub line: Option<u64>,
}

/// What a repair of a file does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileActionKind {
    /// Changes the messages.
    Message(RepairAction),
    /// Removes bytes that are no record; [`FilePlan::dropped`](super::FilePlan::dropped) keeps them.
    DropBytes {
        /// How many.
        length: u64,
        /// Why they are no record.
        why: SkipReason,
    },
    /// Puts a record on a line of its own.
    SplitRecords,
    /// Links an entry to the one before it on its branch.
    Relink,
    /// Gives an entry a unique id, so that the next can be linked to it.
    GiveId,
    /// Changes or removes another line of a message that is changed.
    Rewrite,
}

/// Information that the session no longer contains after a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLoss {
    /// What is lost.
    pub loss: Loss,
    /// The line that held it, from 1; `None` if it follows from another repair.
    pub line: Option<u64>,
}

/// Bytes that a repair removes from a file. [`Debug`](fmt::Debug) does not print them.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Where they were, and why they are no record.
    pub skipped: Skipped,
    /// The bytes.
    pub bytes: Box<[u8]>,
}

impl fmt::Debug for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dropped").field("skipped", &self.skipped).finish_non_exhaustive()
    }
}

/// The actions and losses of a repair, planned or applied. The methods of `FilePlan` explain the
/// fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub(super) actions: Vec<FileAction>,
    pub(super) losses: Vec<FileLoss>,
    pub(super) dropped: Vec<Dropped>,
    pub(super) changed_unknown: Option<usize>,
    pub(super) doubtful_answer: Option<usize>,
    /// The first line whose place in the session is not certain.
    pub(super) unsure_place: Option<u64>,
    pub(super) named: Option<Named>,
}

impl Done {
    /// Appends what was done to a later part of the file.
    pub(super) fn extend(&mut self, more: Self) {
        self.actions.extend(more.actions);
        self.losses.extend(more.losses);
        self.dropped.extend(more.dropped);
        self.changed_unknown = self.changed_unknown.or(more.changed_unknown);
        self.doubtful_answer = self.doubtful_answer.or(more.doubtful_answer);
        self.named = self.named.take().or(more.named);
    }

    /// Converts positions in a part to positions in the file: the part begins at byte `start` after
    /// `lines` lines, and `head` bytes of stub lines were put before it.
    pub(super) fn shift(&mut self, lines: u64, start: u64, head: u64, messages: i64) {
        let lines = move |line: u64| line + lines - u64::from(head > 0);
        let message = move |at: &mut usize| *at = at.saturating_add_signed(messages as isize);
        self.changed_unknown.as_mut().into_iter().for_each(message);
        self.doubtful_answer.as_mut().into_iter().for_each(message);
        self.named.as_mut().into_iter().for_each(|(line, _)| *line = lines(*line));
        for action in &mut self.actions {
            action.line = action.line.map(lines);
            if let FileActionKind::Message(action) = &mut action.action {
                message(&mut action.message_index);
            }
        }
        for lost in &mut self.losses {
            lost.line = lost.line.map(lines);
            message(&mut lost.loss.message_index);
        }
        for Dropped { skipped, .. } in &mut self.dropped {
            skipped.line = lines(skipped.line);
            skipped.offset = skipped.offset + start - head;
        }
    }
}
