//! Repairs a session file that is in memory as a whole.
use super::{
    branch_repair::BranchRepair,
    done::{Dropped, FileAction, FileActionKind, FileLoss, FilePlan},
    edit::Edits,
    finding::FileReport,
    form::FileForm,
    records::Skipped,
    session_file::{PartOfFile, SessionFile},
};
use crate::repair::{ActionKind, Repair, RepairPlan};
use std::collections::BTreeSet;

/// A repair may reveal further damage; this is the limit of passes.
const ROUNDS: usize = 4;

impl SessionFile {
    /// The file after a repair, and the actions. The caller may know the form from the rest of the
    /// file.
    pub(super) fn repaired(self, repair: Repair, form: Option<FileForm>) -> (Self, FilePlan) {
        let (asked, mut file, mut done) = (self.asked, self, FilePlan::default());
        let (path, drafts) = file.branch();
        if let Some(&unsure) = path.unsure.first() {
            done.unsure_place = Some(file.entries[unsure].place.line);
            return (file, done);
        }
        let (before, aside) = (file.transcript_of(&path, &drafts), file.unsent_results(&drafts));
        // The original line of each record.
        let mut lines: Vec<_> =
            file.entries.iter().map(|located| Some(located.place.line)).collect();
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
            file = Self::read_as(form, bytes.into(), asked);
            // A record that could not be read in the last pass is new.
            lines.resize(file.entries.len(), None);
            let now = file.check_as(form, repair.members);
            if now.is_clean() && repair.leaves(&now) {
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
        (file, done)
    }
}

impl Repair {
    /// Whether it does nothing to a file without findings.
    fn leaves(self, clean: &FileReport) -> bool {
        !self.waive_thoughts && (!self.close_tail || clean.pending.is_empty())
    }
}

impl FilePlan {
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
        let (mut reported, first) = (BTreeSet::new(), self.actions.len());
        if let Some(plan) = branch.plan(repair) {
            self.report(&plan, &branch, lines, &mut reported);
        }
        branch.named.keys().for_each(|&node| self.act(FileActionKind::GiveId, lines[node]));
        branch.relinked.iter().for_each(|&node| self.act(FileActionKind::Relink, lines[node]));
        let new = self.actions[first..].iter().filter_map(|action| action.line);
        let mut named: BTreeSet<u64> = new.collect();
        // A moved entry has another parent in its new place.
        for line in branch.moved.iter().filter_map(|&node| lines[node]) {
            if named.insert(line) {
                self.act(FileActionKind::Relink, Some(line));
            }
        }
        // A message may have several lines, of which only the first was named, or be merged into
        // another.
        let BranchRepair { drafts, edits, .. } = branch;
        for draft in reported.into_iter().filter_map(|at| drafts.get(at)) {
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
    fn report(
        &mut self,
        plan: &RepairPlan,
        branch: &BranchRepair<'_>,
        lines: &[Option<u64>],
        reported: &mut BTreeSet<usize>,
    ) {
        let drafts = &branch.drafts;
        let line =
            |at: Option<usize>, id: Option<&str>| lines[branch.line_of(drafts.get(at?)?, id)?];
        for (action, at) in plan.actions().iter().zip(plan.places()) {
            let message = Some(at).filter(|&at| at < drafts.len());
            reported.extend(message);
            if action.action == ActionKind::JoinMessages {
                reported.extend(message.and_then(|at| at.checked_sub(1)));
            }
            let id = action.tool_use_id.as_deref();
            self.act(FileActionKind::Message(action.clone()), line(message, id));
        }
        for loss in plan.losses() {
            reported.insert(loss.message_index);
            let line = line(Some(loss.message_index), Some(&loss.tool_use_id));
            self.losses.push(FileLoss { loss: loss.clone(), line });
        }
    }
}
