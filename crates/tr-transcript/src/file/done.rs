//! The plan for the repair of a file: actions, losses and removed bytes, and how those of separately
//! repaired parts of a file are joined.
use super::records::{SkipReason, Skipped};
use crate::repair::{Loss, RepairAction};
use serde::Serialize;
use std::fmt;

/// One action of a repair of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileAction {
    /// On which line, from 1, of the original file; `None` for a new line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What it does.
    #[serde(flatten)]
    pub action: FileActionKind,
}

/// What a repair of a file does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileActionKind {
    /// Removes bytes that are no record; [`FilePlan::dropped`] keeps them.
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
    /// Adds to a message that no other action names, as a comparison of the old file with the new one
    /// shows.
    Extend,
    /// Changes the messages.
    #[serde(untagged)]
    Message(RepairAction),
}

/// Information that the session no longer contains after a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileLoss {
    /// The line that held it, from 1; `None` if it follows from another repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What is lost.
    #[serde(flatten)]
    pub loss: Loss,
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

/// The plan for the repair of a session file, and what it loses.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct FilePlan {
    /// The planned actions.
    pub actions: Vec<FileAction>,
    /// What the session will no longer contain.
    pub losses: Vec<FileLoss>,
    /// The bytes that will be removed because they are no record.
    pub dropped: Vec<Dropped>,
    /// The first message that is not fully understood and would change; `None` if there is none.
    pub changed_unknown: Option<usize>,
    /// The first message that may hold the answer to a call whose outcome the plan reports as
    /// unknown: see
    /// [`Transcript::first_doubtful_answer`](crate::Transcript::first_doubtful_answer).
    pub doubtful_answer: Option<usize>,
    /// A line whose place in the session is not certain ([`FileFault::UnsurePlace`]): its repair
    /// would be a guess, so nothing is planned.
    ///
    /// [`FileFault::UnsurePlace`]: crate::FileFault::UnsurePlace
    pub unsure_place: Option<u64>,
    /// The first line that names a call whose outcome the plan reports as unknown, and the call's
    /// id. The line is not sent to the model: it holds the call's result outside of the active
    /// branch, or names the call in an unknown form, and may hold its outcome.
    pub named_elsewhere: Option<(u64, Box<str>)>,
    /// The file after the repair; `None` if there is nothing to do.
    pub after: Option<Vec<u8>>,
    /// The hash of the file that it was planned for.
    pub(super) before: Option<blake3::Hash>,
}

impl FilePlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Appends what was done to a later part of the file.
    pub(super) fn extend(&mut self, more: Self) {
        self.actions.extend(more.actions);
        self.losses.extend(more.losses);
        self.dropped.extend(more.dropped);
        self.changed_unknown = self.changed_unknown.or(more.changed_unknown);
        self.doubtful_answer = self.doubtful_answer.or(more.doubtful_answer);
        self.named_elsewhere = self.named_elsewhere.take().or(more.named_elsewhere);
    }

    /// Converts positions in a part to positions in the file.
    pub(super) fn shift(&mut self, lines: i64, bytes: i64, messages: i64) {
        let lines = move |line: u64| line.saturating_add_signed(lines);
        let message = move |at: &mut usize| *at = at.saturating_add_signed(messages as isize);
        self.changed_unknown.as_mut().into_iter().for_each(message);
        self.doubtful_answer.as_mut().into_iter().for_each(message);
        self.named_elsewhere.as_mut().into_iter().for_each(|(line, _)| *line = lines(*line));
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
            skipped.offset = skipped.offset.saturating_add_signed(bytes);
        }
    }
}
