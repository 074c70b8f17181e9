//! The branch after the repair: the order of its lines, and the last one.
use super::{BranchRepair, New, NewLine};
use crate::file::{
    edit::InsertAt,
    entry::{FirstKept, What},
    new_line, preserved, relink,
};
use crate::json;

/// An entry of the branch after the repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Old(usize),
    /// The `nth` of the lines that are inserted after `at` entries of the branch.
    New {
        at: usize,
        nth: usize,
    },
}

impl BranchRepair<'_> {
    /// Links the kept and the inserted lines into one branch.
    pub(super) fn chain(&mut self) {
        if self.file.is_linked && self.path.pointer.is_none() {
            self.end_with_last();
        }
        let first_kept = self.first_kept();
        if self.file.is_linked {
            self.link(first_kept.filter(|first| !self.is_kept_by_name(*first)));
            self.point_to_last();
        }
        self.keep_listed();
        self.write_new();
        if let Some(first) = first_kept {
            self.keep_from(first);
        }
    }

    /// The branch after the repair, including removed entries.
    pub(super) fn branch(&self) -> Vec<Step> {
        self.branch_between(0, self.path.branch.len() + 1)
    }

    /// The part of the branch from the entry at index `from` up to `to`.
    fn branch_between(&self, from: usize, to: usize) -> Vec<Step> {
        let steps = (from..to).flat_map(|at| {
            let new = 0..self.added.get(&at).map_or(0, Vec::len);
            let old = self.path.branch.get(at).copied().map(Step::Old);
            new.map(move |nth| Step::New { at, nth }).chain(old)
        });
        steps.collect()
    }

    /// The last entry of the branch that is kept.
    fn last_step(&self) -> Option<Step> {
        self.branch().into_iter().rfind(|step| !self.is_gone(*step))
    }

    pub(super) fn is_gone(&self, step: Step) -> bool {
        matches!(step, Step::Old(node) if self.edits.is_gone(node))
    }

    pub(super) fn id(&self, step: Step) -> Option<&str> {
        match step {
            Step::Old(node) => {
                let id = self.file.entries[node].entry.id.as_ref();
                self.named.get(&node).or(id).map(|id| &**id)
            }
            Step::New { at, nth } => self.added[&at][nth].id.as_deref(),
        }
    }

    /// Where lines are inserted that follow this many entries of the branch.
    fn spot(&self, at: usize) -> InsertAt {
        let branch = &self.path.branch;
        match (branch.first(), at.checked_sub(1)) {
            (None, _) => InsertAt::End,
            (Some(&first), None) => InsertAt::Before(first),
            // The end of the branch is after the last of its lines in the file, which need not be
            // its last entry.
            (Some(_), Some(_)) if at == branch.len() => InsertAt::After(self.last),
            (Some(_), Some(before)) => InsertAt::After(branch[before]),
        }
    }

    /// Updates the record that names the last entry of the branch, if there is one.
    fn point_to_last(&mut self) {
        let Some(pointer) = self.path.pointer else { return };
        let What::Leaf { id: was, .. } = &self.file.entries[pointer].entry.what else { return };
        let id = self.last_step().and_then(|last| self.id(last));
        if let Some(id) = id.filter(|id| **id != **was).map(json::quote) {
            self.edits.set_member(self.file, pointer, "leafUuid", &id);
            self.relinked.insert(pointer);
        }
    }

    /// Harnesses start at the last entry of the file: makes that one the last of the branch.
    fn end_with_last(&mut self) {
        let (form, end) = (self.file.form(), self.path.branch.len());
        let Some(last) = self.last_step() else { return };
        let place = |at: usize| match self.spot(at) {
            InsertAt::Before(record) | InsertAt::After(record) => record,
            InsertAt::End => self.file.entries.len(),
        };
        let (stands, own) = match last {
            Step::New { at, .. } if at == end => return,
            Step::New { at, .. } => (place(at), Some(at)),
            Step::Old(node) => (node, None),
        };
        let is_leaf = |node: usize| self.file.entries[node].entry.is_leaf(form);
        let mut behind = stands + 1..self.file.entries.len();
        let is_last = !behind.any(|node| is_leaf(node) && !self.edits.is_gone(node))
            && !self.added.keys().any(|&at| Some(at) != own && place(at) >= stands);
        match last {
            _ if is_last => {}
            Step::Old(node) => self.move_entry(node, end),
            Step::New { at, .. } => {
                let new = self.added.get_mut(&at).and_then(Vec::pop);
                new.into_iter().for_each(|new| self.add(end, new));
            }
        }
    }

    /// The first entry that the last compaction of the branch should keep; `None` if it keeps none.
    fn first_kept(&self) -> Option<Step> {
        let step = |node: usize| self.steps.get(&node).copied();
        let from = step(*self.path.nodes.first()?)?;
        let to = self.path.summary.and_then(step).filter(|&to| from < to)?;
        // Includes lines inserted directly before the compaction, but not the compaction itself.
        let mut kept = self.branch_between(from, to + 1);
        kept.pop();
        kept.into_iter().find(|step| !self.is_gone(*step))
    }

    /// Whether the last compaction names this entry already; of several with its id the first one
    /// of the branch is meant.
    fn is_kept_by_name(&self, first: Step) -> bool {
        let compaction = self.path.summary.map(|node| &self.file.entries[node].entry.what);
        let Some(What::Compaction(FirstKept::Id(id))) = compaction else { return false };
        self.id(first) == Some(id)
    }

    /// Updates the last compaction to keep entries from this one on.
    fn keep_from(&mut self, first: Step) {
        let Some(compaction) = self.path.summary else { return };
        let What::Compaction(kept) = &self.file.entries[compaction].entry.what else { return };
        let (name, now, is_right) = match kept {
            FirstKept::Nothing => return,
            FirstKept::Id(id) => {
                let Some(now) = self.id(first) else { return };
                ("firstKeptEntryId", json::quote(now), **id == *now)
            }
            FirstKept::Number(number) => {
                let now = self.number(first);
                ("firstKeptEntryIndex", now.to_string(), *number == now as u64)
            }
        };
        if !is_right {
            self.edits.set_member(self.file, compaction, name, &now);
            self.relinked.insert(compaction);
        }
    }

    /// Makes a compaction that lists what it keeps list that branch as it is now.
    fn keep_listed(&mut self) {
        let file = self.file;
        let Some((boundary, _, nodes)) = relink::kept(&file.entries, false) else { return };
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return };
        let step = |node| self.steps.get(node).copied();
        let (Some(from), Some(to)) = (step(first), step(last)) else { return };
        // Lines that follow the last one are kept with it.
        let mut now = self.branch_between(from, to + 2);
        let is_before = |it: &Step| matches!(*it, Step::New { at, .. } if at == from);
        now.retain(|it| !self.is_gone(*it) && !is_before(it));
        now.pop_if(|it| matches!(it, Step::Old(node) if !nodes.contains(node)));
        let ids: Vec<_> = now.iter().filter_map(|it| self.id(*it)).collect();
        let was: Vec<_> = nodes.iter().filter_map(|&node| self.id(Step::Old(node))).collect();
        if ids == was {
            return;
        }
        if let Some(line) = preserved::with(&self.edits.text(file, boundary), &ids) {
            self.edits.set(boundary, line);
            self.relinked.insert(boundary);
        }
    }

    /// How many records will stand before the first kept entry.
    fn number(&self, first: Step) -> usize {
        match first {
            Step::Old(node) => self.edits.number(node),
            Step::New { at, .. } => match self.spot(at) {
                InsertAt::After(record) => {
                    self.edits.number(record) + usize::from(!self.edits.is_gone(record))
                }
                InsertAt::Before(record) => self.edits.number(record) - self.added[&at].len(),
                InsertAt::End => 0,
            },
        }
    }

    /// Writes the inserted lines, each linked to the one before it.
    fn write_new(&mut self) {
        let mut parent: Option<&str> = None;
        let mut neighbor = self.path.nodes.first().copied();
        let mut lines = Vec::new();
        let mut writer = new_line::Writer::new(self.file);
        for step in self.branch() {
            match step {
                Step::Old(node) if self.edits.is_gone(node) => continue,
                Step::Old(node) => neighbor = Some(node),
                Step::New { at, nth } => {
                    let New { id, line } = &self.added[&at][nth];
                    let text = match line {
                        NewLine::Moved(node, text) => {
                            let id = self.named.get(node).map(|id| &**id);
                            new_line::moved(self.file, text, id, parent)
                        }
                        NewLine::Message(message) => {
                            writer.message(id.as_deref(), parent, neighbor, message)
                        }
                    };
                    lines.push((self.spot(at), text));
                }
            }
            parent = self.id(step).or(parent);
        }
        for (spot, text) in lines {
            self.edits.insert(spot, text);
        }
    }
}
