//! The plan for the repair of a session file, and what it loses.
use super::{
    branch_repair::BranchRepair,
    check::FileCheck,
    drafts::Draft,
    edit::Edits,
    form::FileForm,
    named::Named,
    planner::FilePlanner,
    records::{SkipReason, Skipped},
    remaining::Remaining,
    report::FileReport,
    session_file::{PartOfFile, SessionFile},
};
use crate::repair::{ActionKind, Loss, Repair, RepairAction, RepairPlan, StalePlan};
use std::{collections::BTreeSet, fmt};

/// A repair may reveal further damage; this is the limit of passes.
const ROUNDS: usize = 4;

/// The plan for the repair of a session file, and what it loses.
#[derive(Clone, Debug)]
#[must_use]
pub struct FilePlan {
    pub(super) before: blake3::Hash,
    pub(super) after: Option<Vec<u8>>,
    pub(super) done: Done,
    pub(super) remaining: Option<Left>,
}

/// The findings after the repair.
#[derive(Clone, Debug)]
pub(super) enum Left {
    Whole(FileReport),
    /// Computed from the reports of the repaired parts.
    Parts(Remaining),
}

/// One action of a repair of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileAction {
    /// What.
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
}

/// Information that the session no longer contains after a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLoss {
    /// What.
    pub loss: Loss,
    /// On which line it was, from 1; `None` if it follows from another repair.
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

impl SessionFile {
    /// Plans a repair of the messages that the model would be sent, of links, and of bytes that are
    /// no record. Does not change the file. Deterministic and idempotent.
    pub fn plan(&self, repair: Repair) -> FilePlan {
        FilePlanner::new(repair).plan(&self.bytes)
    }

    /// Applies the plan.
    ///
    /// # Errors
    /// If the file has changed since it was planned; it is then left unchanged.
    pub fn apply(&mut self, plan: FilePlan) -> Result<FileRepair, StalePlan> {
        if blake3::hash(&self.bytes) != plan.before {
            return Err(StalePlan::new());
        }
        let FilePlan { after, done: Done { actions, losses, dropped, .. }, .. } = plan;
        if let Some(after) = after {
            *self = Self::read(after);
        }
        Ok(FileRepair { repaired: !actions.is_empty(), actions, losses, dropped })
    }

    /// The file after a repair, the actions, and the check's report if anything changed. The caller
    /// may know the form from the rest of the file.
    pub(super) fn repaired(
        self,
        repair: Repair,
        form: Option<FileForm>,
    ) -> (Self, Done, Option<FileReport>) {
        let (asked, mut file, mut done) = (self.asked, self, Done::default());
        let mut report = None;
        let (before, aside) = file.before_repair();
        // The original line of each record.
        let mut lines: Vec<_> = file.entries.iter().map(|located| Some(located.line)).collect();
        for round in 0..ROUNDS {
            let count = done.actions.len();
            done.clean(&file, &lines, round == 0);
            let edits = done.repair_messages(&file, &lines, repair);
            if done.actions.len() == count {
                break;
            }
            let origins = edits.origins(lines.len());
            lines = origins.into_iter().map(|record| record.and_then(|at| lines[at])).collect();
            let bytes = edits.write(&file);
            drop(file);
            file = Self::read_as(form, bytes.into()).asked(asked);
            // A record that could not be read in the last pass is new.
            lines.resize(file.entries.len(), None);
            let now = report.insert(file.checked(repair.has_members(), form));
            if now.is_clean() && repair.leaves(now) {
                break;
            }
        }
        if let (false, Some(before)) = (done.actions.is_empty(), before) {
            let after = file.transcript();
            let after = after.as_ref();
            done.changed_unknown = after.and_then(|after| before.first_changed_unknown(after));
            done.doubtful_answer = after.and_then(|after| before.first_doubtful_answer(after));
        }
        done.look_aside(&aside);
        (file, done, report)
    }

    fn checked(&self, members: bool, form: Option<FileForm>) -> FileReport {
        let check = FileCheck::new().max_record(usize::MAX).window(usize::MAX).asked(self.asked);
        let check = form.map_or(check.clone(), |form| check.form(form));
        let check = if members { check.with_members() } else { check };
        check
            .run(&*self.bytes, |_| {})
            .unwrap_or_else(|error| unreachable!("a slice can always be read: {error}"))
    }
}

impl Repair {
    /// Whether it does nothing to a file without findings.
    fn leaves(self, clean: &FileReport) -> bool {
        !self.waives_thoughts() && (!self.closes_tail() || clean.pending.is_empty())
    }
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
    /// if the repair corrects those: see [`Repair::with_members`].
    #[must_use]
    pub fn remaining(&self, before: &FileReport) -> Option<FileReport> {
        match self.remaining.as_ref()? {
            Left::Whole(report) => Some(report.clone()),
            Left::Parts(parts) => parts.of(before, self.after()?),
        }
    }

    /// The repaired file, without the plan.
    #[must_use]
    pub fn into_after(self) -> Option<Vec<u8>> {
        self.after
    }

    /// The actions, the losses and the repaired file, without copies: the plan for a hundred
    /// thousand lines has many.
    #[must_use]
    pub fn into_parts(self) -> (Vec<FileAction>, Vec<FileLoss>, Option<Vec<u8>>) {
        (self.done.actions, self.done.losses, self.after)
    }
}

/// The actions and losses of a repair.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub(super) actions: Vec<FileAction>,
    pub(super) losses: Vec<FileLoss>,
    pub(super) dropped: Vec<Dropped>,
    changed_unknown: Option<usize>,
    doubtful_answer: Option<usize>,
    pub(super) named: Option<Named>,
}

impl Done {
    /// Adds those of another part.
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

    /// Records the removal of bytes that are no record.
    fn clean(&mut self, file: &SessionFile, lines: &[Option<u64>], is_first: bool) {
        for part in &file.parts {
            match *part {
                PartOfFile::Record(record) if file.spans[record].is_glued => {
                    self.act(FileActionKind::SplitRecords, lines[record]);
                }
                PartOfFile::Record(_) => {}
                PartOfFile::Skipped(skipped) => {
                    let Skipped { offset, length, line, why } = skipped;
                    let action = FileActionKind::DropBytes { length, why };
                    self.act(action, is_first.then_some(line));
                    let start = offset as usize;
                    let bytes = file.bytes[start..start + length as usize].into();
                    self.dropped.push(Dropped { skipped, bytes });
                }
            }
        }
    }

    fn act(&mut self, action: FileActionKind, line: Option<u64>) {
        self.actions.push(FileAction { action, line });
    }

    fn repair_messages(
        &mut self,
        file: &SessionFile,
        lines: &[Option<u64>],
        repair: Repair,
    ) -> Edits {
        let mut branch = BranchRepair::new(file);
        let (mut told, first) = (BTreeSet::new(), self.actions.len());
        if let Some(plan) = branch.plan(repair) {
            self.tell(&plan, branch.drafts(), lines, &mut told);
        }
        branch.named().for_each(|node| self.act(FileActionKind::GiveId, lines[node]));
        branch.relinked().for_each(|node| self.act(FileActionKind::Relink, lines[node]));
        let new = self.actions[first..].iter().filter_map(|action| action.line);
        let mut named: BTreeSet<u64> = new.collect();
        // A moved entry has another parent in its new place.
        for line in branch.moved().filter_map(|node| lines[node]) {
            if named.insert(line) {
                self.act(FileActionKind::Relink, Some(line));
            }
        }
        // A message may have several lines, of which only the first was named, or be merged into
        // another.
        let (drafts, edits) = branch.into_parts();
        for draft in told.into_iter().filter_map(|at| drafts.get(at)) {
            let lines_of = draft.nodes.iter().filter(|&&node| edits.is_touched(node));
            for line in lines_of.filter_map(|&node| lines[node]) {
                if named.insert(line) {
                    self.act(FileActionKind::Rewrite, Some(line));
                }
            }
        }
        edits
    }

    /// Records the actions on messages, and which messages they change.
    fn tell(
        &mut self,
        plan: &RepairPlan,
        drafts: &[Draft],
        lines: &[Option<u64>],
        told: &mut BTreeSet<usize>,
    ) {
        let line = |at: Option<usize>| lines[*drafts.get(at?)?.nodes.first()?];
        for (action, at) in plan.actions().iter().zip(plan.places()) {
            let message = Some(at).filter(|&at| at < drafts.len());
            told.extend(message);
            if action.action == ActionKind::JoinMessages {
                told.extend(message.and_then(|at| at.checked_sub(1)));
            }
            self.act(FileActionKind::Message(action.clone()), line(message));
        }
        for loss in plan.losses() {
            told.insert(loss.message_index);
            let line = line(Some(loss.message_index));
            self.losses.push(FileLoss { loss: loss.clone(), line });
        }
    }
}

impl fmt::Debug for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dropped").field("skipped", &self.skipped).finish_non_exhaustive()
    }
}
