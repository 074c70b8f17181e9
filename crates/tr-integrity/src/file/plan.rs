//! What the repair of a session file will do, and what it loses.
use super::{
    check::FileCheck,
    drafts::Draft,
    edit::Edits,
    form::FileForm,
    mend::Mend,
    named::Named,
    planner::FilePlanner,
    records::{SkipReason, Skipped},
    remaining::Remaining,
    report::FileReport,
    session_file::{PartOfFile, SessionFile},
};
use crate::repair::{ActionKind, Loss, Repair, RepairAction, RepairPlan, StalePlan};
use std::{collections::BTreeSet, fmt};

/// A repair may show what has to be repaired next, but not for long.
const ROUNDS: usize = 4;

/// What the repair of a session file will do, and what it loses.
#[derive(Clone, Debug)]
#[must_use]
pub struct FilePlan {
    pub(super) before: blake3::Hash,
    pub(super) after: Option<Vec<u8>>,
    pub(super) done: Done,
    pub(super) remaining: Option<Left>,
}

/// What is wrong with the file as it will be.
#[derive(Clone, Debug)]
pub(super) enum Left {
    Whole(FileReport),
    /// Parts of it were looked at alone.
    Parts(Remaining),
}

/// One thing that a repair of a file does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileAction {
    /// What.
    pub action: FileActionKind,
    /// On which line, from 1, of the file as it was; `None` if it is of a line that comes.
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
    /// Another line of a message to which something is done changes, or goes.
    Rewrite,
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
        FilePlanner::new(repair).plan(&self.bytes)
    }

    /// Does what was planned.
    ///
    /// # Errors
    /// If the file has changed since; it is left alone then.
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

    /// It as it is after a repair, what that did, and what a check says then, if it did anything. The
    /// form may be known by what stands around it.
    pub(super) fn repaired(
        self,
        repair: Repair,
        form: Option<FileForm>,
    ) -> (Self, Done, Option<FileReport>) {
        let (asked, mut file, mut done) = (self.asked, self, Done::default());
        let mut report = None;
        let (before, aside) = file.before_repair();
        // Where each record was at first.
        let mut lines: Vec<_> = file.entries.iter().map(|located| Some(located.line)).collect();
        for round in 0..ROUNDS {
            let count = done.actions.len();
            done.clean(&file, &lines, round == 0);
            let edits = done.mend(&file, &lines, repair);
            if done.actions.len() == count {
                break;
            }
            let origins = edits.origins(lines.len());
            lines = origins.into_iter().map(|record| record.and_then(|at| lines[at])).collect();
            let bytes = edits.write(&file);
            drop(file);
            file = Self::read_as(form, bytes.into()).asked(asked);
            // A record that could not be read before is new.
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
    /// Whether it does nothing to a file in which nothing is found.
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

    /// The first message that would change though not all of it is understood; `None` if there is
    /// none.
    #[must_use]
    pub fn changed_unknown(&self) -> Option<usize> {
        self.done.changed_unknown
    }

    /// The first message that may hold the answer to a call whose outcome would be said to be
    /// unknown: see [`Transcript::first_doubtful_answer`](crate::Transcript::first_doubtful_answer).
    #[must_use]
    pub fn doubtful_answer(&self) -> Option<usize> {
        self.done.doubtful_answer
    }

    /// The first line that speaks of a call whose outcome would be said to be unknown, and the
    /// call's id. The line is no message that the model is sent: it has the call's result aside of
    /// the active branch, or names it in a form that is not known, and may have its outcome.
    #[must_use]
    pub fn named_elsewhere(&self) -> Option<(u64, &str)> {
        self.done.named.as_ref().map(|(line, id)| (*line, &**id))
    }

    /// What will be done.
    #[must_use]
    pub fn actions(&self) -> &[FileAction] {
        &self.done.actions
    }

    /// What the session will tell no more.
    #[must_use]
    pub fn losses(&self) -> &[FileLoss] {
        &self.done.losses
    }

    /// What will be taken out, since it is no record.
    #[must_use]
    pub fn dropped(&self) -> &[Dropped] {
        &self.done.dropped
    }

    /// The file as it will be; `None` if there is nothing to do.
    #[must_use]
    pub fn after(&self) -> Option<&[u8]> {
        self.after.as_deref()
    }

    /// What a check will say of the file as it will be, where that is known without another look at
    /// it; `before` is what one says of it as it is. With what is refused on its own, if the repair
    /// mends that: see [`Repair::with_members`].
    #[must_use]
    pub fn remaining(&self, before: &FileReport) -> Option<FileReport> {
        match self.remaining.as_ref()? {
            Left::Whole(report) => Some(report.clone()),
            Left::Parts(parts) => parts.of(before, self.after()?),
        }
    }

    /// The same, without the plan.
    #[must_use]
    pub fn into_after(self) -> Option<Vec<u8>> {
        self.after
    }

    /// What will be done, what the session will tell no more, and the file as it will be: without
    /// copies, of which a plan for a hundred thousand lines would need many.
    #[must_use]
    pub fn into_parts(self) -> (Vec<FileAction>, Vec<FileLoss>, Option<Vec<u8>>) {
        (self.done.actions, self.done.losses, self.after)
    }
}

/// What a repair does, and what it loses.
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
    /// Also what the repair of another part does.
    pub(super) fn extend(&mut self, more: Self) {
        self.actions.extend(more.actions);
        self.losses.extend(more.losses);
        self.dropped.extend(more.dropped);
        self.changed_unknown = self.changed_unknown.or(more.changed_unknown);
        self.doubtful_answer = self.doubtful_answer.or(more.doubtful_answer);
        self.named = self.named.take().or(more.named);
    }

    /// Of a part that begins behind `lines` lines and at `start`, which had a line of `head` bytes
    /// put before it: what it says of the whole file.
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

    /// Notes what is done with the bytes that are no record.
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

    fn mend(&mut self, file: &SessionFile, lines: &[Option<u64>], repair: Repair) -> Edits {
        let mut mend = Mend::new(file);
        let (mut told, first) = (BTreeSet::new(), self.actions.len());
        if let Some(plan) = mend.plan(repair) {
            self.tell(&plan, mend.drafts(), lines, &mut told);
        }
        mend.named().for_each(|node| self.act(FileActionKind::GiveId, lines[node]));
        mend.relinked().for_each(|node| self.act(FileActionKind::Relink, lines[node]));
        let new = self.actions[first..].iter().filter_map(|action| action.line);
        let mut named: BTreeSet<u64> = new.collect();
        // What stands elsewhere follows another entry there.
        for line in mend.moved().filter_map(|node| lines[node]) {
            if named.insert(line) {
                self.act(FileActionKind::Relink, Some(line));
            }
        }
        // A message may be several lines, of which the first was named; or go into another.
        let (drafts, edits) = mend.into_parts();
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

    /// Notes what is done to messages, and to which.
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
