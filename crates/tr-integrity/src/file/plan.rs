//! What the repair of a session file will do, and what it loses.
use super::{
    drafts::Draft,
    edit::Edits,
    mend::Mend,
    records::{SkipReason, Skipped},
    session_file::{PartOfFile, SessionFile},
};
use crate::repair::{ActionKind, Loss, Repair, RepairAction, RepairMode, StalePlan};
use std::fmt;

/// A repair may show what has to be repaired next, but not for long.
const ROUNDS: usize = 4;

/// What the repair of a session file will do, and what it loses.
#[derive(Clone, Debug)]
#[must_use]
pub struct FilePlan {
    before: Box<[u8]>,
    after: SessionFile,
    actions: Vec<FileAction>,
    losses: Vec<FileLoss>,
    dropped: Vec<Dropped>,
}

/// One thing that a repair of a file does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileAction {
    /// What.
    pub action: FileActionKind,
    /// On which line, from 1, of the file as it was; `None` if it follows from another repair.
    pub line: Option<u64>,
}

/// What a repair of a file does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileActionKind {
    /// Something to the messages.
    Message(RepairAction),
    /// Bytes that are no record go; they are kept in [`FilePlan::dropped`].
    DropBytes {
        /// How many.
        length: u64,
        /// Why they are no record.
        why: SkipReason,
    },
    /// A record gets a line of its own.
    SplitRecords,
    /// An entry is linked to the one before it on its branch.
    Relink,
    /// An entry gets an id of its own, so that the next can be linked to it.
    GiveId,
}

/// Something that the session tells no more after a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLoss {
    /// What.
    pub loss: Loss,
    /// On which line it began, from 1; `None` if it follows from another repair.
    pub line: Option<u64>,
}

/// Bytes that a repair takes out of a file. [`Debug`](fmt::Debug) does not print them.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Where they were.
    pub skipped: Skipped,
    /// The bytes.
    pub bytes: Box<[u8]>,
}

/// What a repair of a file did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileRepair {
    /// Whether anything was changed.
    pub repaired: bool,
    /// What was done.
    pub actions: Vec<FileAction>,
    /// What the session tells no more.
    pub losses: Vec<FileLoss>,
    /// What was taken out, since it was no record.
    pub dropped: Vec<Dropped>,
}

impl SessionFile {
    /// Plans a repair: of the messages that the model would be sent, of links, and of what is no
    /// record. The file stays as it is. Deterministic, idempotent, without a clock.
    pub fn plan(&self, repair: Repair) -> FilePlan {
        let mut plan = FilePlan {
            before: self.bytes.clone(),
            after: self.clone(),
            actions: Vec::new(),
            losses: Vec::new(),
            dropped: Vec::new(),
        };
        for round in 0..ROUNDS {
            let done = plan.actions.len();
            let file = plan.after.clone();
            plan.clean(&file, round == 0);
            let edits = plan.mend(&file, repair, round == 0);
            if plan.actions.len() == done {
                break;
            }
            plan.after = SessionFile::read(edits.write(&file));
        }
        plan
    }

    /// Does what was planned.
    ///
    /// # Errors
    /// If the file has changed since; it is left alone then.
    pub fn apply(&mut self, plan: FilePlan) -> Result<FileRepair, StalePlan> {
        if self.bytes != plan.before {
            return Err(StalePlan::new());
        }
        let FilePlan { after, actions, losses, dropped, .. } = plan;
        *self = after;
        Ok(FileRepair { repaired: !actions.is_empty(), actions, losses, dropped })
    }
}

impl FilePlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// What will be done.
    #[must_use]
    pub fn actions(&self) -> &[FileAction] {
        &self.actions
    }

    /// What the session will tell no more.
    #[must_use]
    pub fn losses(&self) -> &[FileLoss] {
        &self.losses
    }

    /// What will be taken out, since it is no record.
    #[must_use]
    pub fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// The file as it will be.
    #[must_use]
    pub fn after(&self) -> &SessionFile {
        &self.after
    }

    /// Notes what is done with the bytes that are no record.
    fn clean(&mut self, file: &SessionFile, is_first: bool) {
        let place = |line: u64| is_first.then_some(line);
        for part in &file.parts {
            match *part {
                PartOfFile::Record(record) if file.spans[record].is_glued => {
                    let line = place(file.entries[record].line);
                    self.actions.push(FileAction { action: FileActionKind::SplitRecords, line });
                }
                PartOfFile::Record(_) => {}
                PartOfFile::Skipped(skipped) => {
                    let Skipped { offset, length, line, why } = skipped;
                    let action = FileActionKind::DropBytes { length, why };
                    self.actions.push(FileAction { action, line: place(line) });
                    let start = offset as usize;
                    let bytes = file.bytes[start..start + length as usize].into();
                    self.dropped.push(Dropped { skipped, bytes });
                }
            }
        }
    }

    fn mend(&mut self, file: &SessionFile, repair: Repair, is_first: bool) -> Edits {
        let mut mend = Mend::new(file);
        if let Some(plan) = mend.plan(repair) {
            let line = |draft: Option<&Draft>| {
                let draft = draft.filter(|_| is_first)?;
                Some(file.entries[*draft.nodes.first()?].line)
            };
            // In mode `remove`, messages are counted after the removals before.
            let mut was: Vec<_> = mend.drafts().iter().collect();
            for action in plan.actions() {
                let at = action.message_index;
                let line = line(was.get(at).copied());
                let removes = action.action == ActionKind::RemoveEmptyMessage;
                if removes && repair.mode() == RepairMode::Remove && at < was.len() {
                    was.remove(at);
                }
                let action = FileActionKind::Message(action.clone());
                self.actions.push(FileAction { action, line });
            }
            for loss in plan.losses() {
                let line = line(mend.drafts().get(loss.message_index));
                self.losses.push(FileLoss { loss: loss.clone(), line });
            }
        }
        let mut act = |action: FileActionKind, node: usize| {
            let line = is_first.then_some(file.entries[node].line);
            self.actions.push(FileAction { action, line });
        };
        mend.named().for_each(|node| act(FileActionKind::GiveId, node));
        mend.relinked().iter().for_each(|&node| act(FileActionKind::Relink, node));
        mend.into_edits()
    }
}

impl fmt::Debug for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dropped").field("skipped", &self.skipped).finish_non_exhaustive()
    }
}
