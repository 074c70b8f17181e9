//! Applies a repair of the messages to the file: changed lines and their links.
mod blocks;
mod chain;
mod links;

use super::{
    align::{Aligned, align},
    drafts::Draft,
    edit::Edits,
    new_line::NewIds,
    path::Path,
    session_file::SessionFile,
};
use crate::{
    message::Message,
    name::Name,
    repair::{Repair, RepairPlan},
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A repair that is being applied to a file.
pub(super) struct BranchRepair<'f> {
    file: &'f SessionFile,
    path: Path,
    /// The drafts of the messages that are repaired.
    pub(super) drafts: Vec<Draft>,
    pub(super) edits: Edits,
    /// The inserted lines, by the number of branch entries before them.
    added: BTreeMap<usize, Vec<New>>,
    /// The entry of the branch that is last in the file.
    last: usize,
    /// The index on the branch of each entry.
    steps: HashMap<usize, usize>,
    ids: NewIds,
    /// Entries that get a new id.
    pub(super) named: BTreeMap<usize, Name>,
    /// Entries whose links were changed.
    pub(super) relinked: BTreeSet<usize>,
    /// Entries that move to another place.
    pub(super) moved: BTreeSet<usize>,
}

/// A line that is inserted into the branch, or moves there.
#[derive(Clone, Debug)]
struct New {
    id: Option<Name>,
    line: NewLine,
}

#[derive(Clone, Debug)]
enum NewLine {
    Message(Message),
    /// A moved entry with its text.
    Moved(usize, Box<str>),
}

impl<'f> BranchRepair<'f> {
    pub(super) fn new(file: &'f SessionFile) -> Self {
        let path = file.path();
        let drafts = file.drafts(&path);
        let steps = path.branch.iter().enumerate().map(|(step, &node)| (node, step)).collect();
        let (edits, added, named) = (Edits::default(), BTreeMap::new(), BTreeMap::new());
        let ids = NewIds::of(file);
        let (relinked, moved) = (BTreeSet::new(), BTreeSet::new());
        let last = path.branch.iter().copied().max().unwrap_or_default();
        Self { file, path, drafts, edits, added, last, steps, ids, named, relinked, moved }
    }

    /// Plans the repair of the messages and the edits for it.
    pub(super) fn plan(&mut self, repair: Repair) -> Option<RepairPlan> {
        let transcript = self.file.transcript_of(&self.path, &self.drafts)?;
        let plan = repair.plan(&transcript);
        if !plan.is_empty() {
            let (now, gone) = align(transcript.messages(), &plan);
            self.follow(&now, &gone);
        }
        self.chain();
        Some(plan)
    }

    fn follow(&mut self, now: &[Aligned<'_>], gone: &[usize]) {
        for &message in gone {
            for node in self.drafts[message].nodes.clone() {
                self.edits.remove(node);
            }
        }
        // How many entries of the branch stand before the next inserted line.
        let first = self.path.nodes.first().and_then(|node| self.steps.get(node));
        let mut at = first.copied().unwrap_or(self.path.branch.len());
        for message in now {
            match *message {
                Aligned::Kept(was) => at = self.behind(was).unwrap_or(at),
                Aligned::Changed(was, message) => {
                    self.change(was, message, at);
                    at = self.behind(was).unwrap_or(at);
                }
                Aligned::Moved(was) => self.move_entry(self.drafts[was].nodes[0], at),
                Aligned::New(message) => self.add_message(at, message.clone()),
            }
        }
    }

    /// How many entries of the branch there are up to the last one of a draft. A summary stands
    /// after the first entry of the messages that it is shown before.
    fn behind(&self, draft: usize) -> Option<usize> {
        let draft = Some(&self.drafts[draft]).filter(|draft| !draft.is_summary)?;
        draft.nodes.iter().filter_map(|node| self.steps.get(node)).max().map(|step| step + 1)
    }

    fn add_message(&mut self, at: usize, message: Message) {
        let before = self.path.branch[..at].last().map(|&node| &self.file.entries[node].entry);
        let id = self.ids.next(before.and_then(|entry| entry.id.as_deref()), message.raw());
        self.add(at, New { id, line: NewLine::Message(message) });
    }

    fn move_entry(&mut self, node: usize, at: usize) {
        let id = self.file.entries[node].entry.id.clone();
        let line = NewLine::Moved(node, self.edits.text(self.file, node).into());
        self.edits.remove(node);
        self.moved.insert(node);
        self.add(at, New { id, line });
    }

    fn add(&mut self, at: usize, new: New) {
        self.added.entry(at).or_default().push(new);
    }
}
