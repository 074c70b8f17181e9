//! The plan for the repair of a session file, and what it loses.
use super::{
    done::{Done, Dropped, FileAction, FileLoss},
    remaining::Remaining,
    report::FileReport,
};

/// The plan for the repair of a session file, and what it loses.
#[derive(Clone, Debug)]
#[must_use]
pub struct FilePlan {
    pub(super) before: blake3::Hash,
    pub(super) after: Option<Vec<u8>>,
    pub(super) done: Done,
    pub(super) remaining: Option<RemainingFindings>,
}

/// The findings after the repair.
#[derive(Clone, Debug)]
pub(super) enum RemainingFindings {
    Whole(FileReport),
    /// Computed from the reports of the repaired parts.
    Parts(Remaining),
}

/// The result of a repair of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileRepair {
    /// Whether anything was changed.
    pub repaired: bool,
    /// What was done.
    pub actions: Vec<FileAction>,
    /// What the session no longer contains.
    pub losses: Vec<FileLoss>,
    /// The removed bytes that were no record.
    pub dropped: Vec<Dropped>,
}

impl FilePlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.done.actions.is_empty()
    }

    /// The first message that is not fully understood and would change; `None` if there is none.
    #[must_use]
    pub fn changed_unknown(&self) -> Option<usize> {
        self.done.changed_unknown
    }

    /// The first message that may hold the answer to a call whose outcome the plan reports as
    /// unknown: see
    /// [`Transcript::first_doubtful_answer`](crate::Transcript::first_doubtful_answer).
    #[must_use]
    pub fn doubtful_answer(&self) -> Option<usize> {
        self.done.doubtful_answer
    }

    /// The first line that names a call whose outcome the plan reports as unknown, and the call's
    /// id. The line is not sent to the model: it holds the call's result outside of the active
    /// branch, or names the call in an unknown form, and may hold its outcome.
    #[must_use]
    pub fn named_elsewhere(&self) -> Option<(u64, &str)> {
        self.done.named.as_ref().map(|(line, id)| (*line, &**id))
    }

    /// A line whose place in the session is not certain ([`FileFault::UnsurePlace`]): its repair
    /// would be a guess, so nothing is planned.
    ///
    /// [`FileFault::UnsurePlace`]: crate::FileFault::UnsurePlace
    #[must_use]
    pub fn unsure_place(&self) -> Option<u64> {
        self.done.unsure_place
    }

    /// The planned actions.
    #[must_use]
    pub fn actions(&self) -> &[FileAction] {
        &self.done.actions
    }

    /// What the session will no longer contain.
    #[must_use]
    pub fn losses(&self) -> &[FileLoss] {
        &self.done.losses
    }

    /// The bytes that will be removed because they are no record.
    #[must_use]
    pub fn dropped(&self) -> &[Dropped] {
        &self.done.dropped
    }

    /// The file after the repair; `None` if there is nothing to do.
    #[must_use]
    pub fn after(&self) -> Option<&[u8]> {
        self.after.as_deref()
    }

    /// The check's report of the repaired file, where it is known without another check; `before`
    /// is the report of the file as it is. Includes members that the provider refuses on their own,
    /// if the repair corrects those: see [`Repair::with_members`](crate::Repair::with_members).
    #[must_use]
    pub fn remaining(&self, before: &FileReport) -> Option<FileReport> {
        match self.remaining.as_ref()? {
            RemainingFindings::Whole(report) => Some(report.clone()),
            RemainingFindings::Parts(parts) => parts.of(before, self.after()?),
        }
    }

    /// The actions, the losses and the repaired file, without copies: the plan for a hundred
    /// thousand lines has many.
    #[must_use]
    pub fn into_parts(self) -> (Vec<FileAction>, Vec<FileLoss>, Option<Vec<u8>>) {
        (self.done.actions, self.done.losses, self.after)
    }
}
