//! Plans the repair of a file that may be large by repairing only its damaged parts: the plan, what it
//! loses, and its application.
use super::{
    check::FileCheck,
    done::{Done, Dropped, FileAction, FileLoss},
    finding::{FileFault, FileFinding},
    form::FileForm,
    index::Index,
    part::{self, Parts, Repaired},
    report::FileReport,
    session_file::SessionFile,
};
use crate::repair::{Repair, StalePlan};
use std::cmp::Reverse;

/// The plan for the repair of a session file, and what it loses.
#[derive(Clone, Debug)]
#[must_use]
pub struct FilePlan {
    before: blake3::Hash,
    after: Option<Vec<u8>>,
    done: Done,
    /// Whether the repair corrects members that the provider refuses on their own.
    members: bool,
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

    /// The check's report of the repaired file; `before` is the report of the file as it is. `None`
    /// if nothing changes, or if the repaired file is read as another form. Includes members that
    /// the provider refuses on their own, if the repair corrects those: see
    /// [`Repair::with_members`](crate::Repair::with_members).
    #[must_use]
    pub fn remaining(&self, before: &FileReport) -> Option<FileReport> {
        let after = self.after()?;
        let check = FileCheck::in_memory(after.len());
        let check = if self.members { check.with_members() } else { check };
        // Reading a slice cannot fail.
        check.run(after, |_| {}).ok().filter(|now| now.form == before.form)
    }

    /// The actions, the losses and the repaired file, without copies: the plan for a hundred
    /// thousand lines has many.
    #[must_use]
    pub fn into_parts(self) -> (Vec<FileAction>, Vec<FileLoss>, Option<Vec<u8>>) {
        (self.done.actions, self.done.losses, self.after)
    }
}

/// Plans the repair of a session file that is in memory. In a large file, only the damaged parts
/// are parsed for repair.
///
/// # Memory
///
/// About the file's size once more, the new file included, if it can be cut near the damage: before
/// a turn or a step that shares no id or link with what precedes it. Otherwise about eight times
/// the file's size.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct FilePlanner {
    repair: Repair,
    whole_up_to: usize,
    is_damaged: bool,
}

impl FilePlanner {
    /// Plans this repair.
    pub const fn new(repair: Repair) -> Self {
        Self { repair, whole_up_to: 1 << 20, is_damaged: false }
    }

    /// Files of up to this many bytes are planned as a whole; 1 MiB by default. Larger ones get the
    /// same plan, except for the order of its actions, and for the message indexes in mode
    /// `remove`, which are counted for each part separately.
    pub const fn whole_up_to(mut self, bytes: usize) -> Self {
        self.whole_up_to = bytes;
        self
    }

    /// Whether a check has found something in the file: one that cannot be cut is then planned
    /// without another check. The plan is the same.
    pub const fn damaged(mut self, is_damaged: bool) -> Self {
        self.is_damaged = is_damaged;
        self
    }

    /// Plans the repair of a file.
    pub fn plan(&self, bytes: &[u8]) -> FilePlan {
        self.plan_with(bytes, |_| {})
    }

    /// The same. Calls `progress` with the bytes processed so far, out of twice the file's length.
    pub fn plan_with(&self, bytes: &[u8], mut progress: impl FnMut(u64)) -> FilePlan {
        let before = blake3::hash(bytes);
        let parts =
            if bytes.len() > self.whole_up_to { self.parts(bytes, &mut progress) } else { None };
        let (after, mut done) = match parts {
            Some(parts) => joined(bytes, parts),
            None => {
                let (after, done) = SessionFile::read(bytes).repaired(self.repair, None);
                (after.bytes.into_vec(), done)
            }
        };
        done.look_for_names(bytes);
        let after = (!done.actions.is_empty()).then_some(after);
        progress(2 * bytes.len() as u64);
        FilePlan { before, after, done, members: self.repair.members }
    }

    /// The repaired parts; `None` if the file must be planned as a whole.
    fn parts(&self, bytes: &[u8], progress: &mut impl FnMut(u64)) -> Option<Vec<Repaired>> {
        let form = SessionFile::form_of(bytes);
        if self.repair.waive_thoughts || !part::may_cut(form) {
            return None;
        }
        let index = Index::read(form, bytes, &mut *progress)?;
        let cuts = index.cuts(form, bytes);
        if cuts.is_empty() && self.is_damaged {
            return None;
        }
        let members = self.repair.members;
        let parts = Parts::find(form, bytes, (index, cuts), self.whole_up_to, members, progress)?;
        let Parts { cuts, findings, .. } = &parts;
        if is_unsure(form, bytes, findings) {
            return None;
        }
        let stretch = |offset| cuts.partition_point(|cut| cut.offset <= offset);
        let damaged = findings.iter().map(|finding| finding.offset as usize);
        let tail = self.repair.close_tail.then_some(bytes.len());
        // Adds one undamaged stretch on each side: an insertion at a part's edge changes lines
        // beyond it.
        let stretches = damaged.chain(tail).map(stretch);
        let around = |at: usize| (at.saturating_sub(1), (at + 1).min(cuts.len()));
        // The first of them last.
        let mut open: Vec<(usize, usize)> = stretches.map(around).collect();
        open.sort_unstable_by_key(|part| Reverse(*part));
        open.dedup();
        let mut done: Vec<((usize, usize), Repaired)> = Vec::new();
        while let Some((first, last)) = open.pop() {
            // A part that was widened absorbs its neighbours.
            if let Some(((from, _), _)) = done.pop_if(|((_, end), _)| first <= *end) {
                open.push((first.min(from), last));
            } else if let Some((_, end)) = open.pop_if(|(from, _)| *from <= last) {
                open.push((first, last.max(end)));
            } else if (first, last) == (0, cuts.len()) {
                return None;
            } else if let Some(repaired) = parts.repair(first, last, self.repair) {
                done.push(((first, last), repaired));
            } else {
                let wider = last - first + 1;
                open.push((first.saturating_sub(wider), (last + wider).min(cuts.len())));
            }
        }
        Some(done.into_iter().map(|(_, repaired)| repaired).collect())
    }
}

impl SessionFile {
    /// Plans a repair of the messages that the model would be sent, of links, and of bytes that are
    /// no record. Does not change the file. Deterministic and idempotent. Plans nothing if the place
    /// of a line is not certain: see [`FilePlan::unsure_place`].
    pub fn plan(&self, repair: Repair) -> FilePlan {
        FilePlanner::new(repair).plan(&self.bytes)
    }

    /// Applies the plan.
    ///
    /// # Errors
    /// If the file has changed since it was planned; it is then left unchanged.
    pub fn apply(&mut self, plan: FilePlan) -> Result<FileRepair, StalePlan> {
        if blake3::hash(&self.bytes) != plan.before {
            return Err(StalePlan(()));
        }
        let FilePlan { after, done: Done { actions, losses, dropped, .. }, .. } = plan;
        if let Some(after) = after {
            *self = Self::read(after);
        }
        Ok(FileRepair { repaired: !actions.is_empty(), actions, losses, dropped })
    }
}

/// Whether the place of a line is not certain. Of a line whose parent is missing only the whole
/// file tells.
fn is_unsure(form: FileForm, bytes: &[u8], found: &[FileFinding]) -> bool {
    let has = |found: &[FileFinding], fault| found.iter().any(|finding| finding.fault == fault);
    has(found, FileFault::UnsurePlace)
        || has(found, FileFault::PhantomParent) && {
            let check = FileCheck::in_memory(bytes.len()).form(form);
            let report = check.run(bytes, |_| {});
            report.is_ok_and(|report| has(&report.findings, FileFault::UnsurePlace))
        }
}

/// The file with its repaired parts, and the actions.
fn joined(bytes: &[u8], parts: Vec<Repaired>) -> (Vec<u8>, Done) {
    let mut done = Done::default();
    let more = |part: &Repaired| part.bytes.len().saturating_sub(part.at.len());
    let more: usize = parts.iter().map(more).sum();
    if parts.is_empty() {
        return (Vec::new(), done);
    }
    let mut after = Vec::with_capacity(bytes.len() + more);
    let mut from = 0;
    for Repaired { at, bytes: part, done: more } in parts {
        after.extend_from_slice(&bytes[from..at.start]);
        after.extend_from_slice(&part);
        from = at.end;
        done.extend(more);
    }
    after.extend_from_slice(&bytes[from..]);
    (after, done)
}
