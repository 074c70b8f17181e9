//! Brings a repair of the messages into the file: which lines change, and how they are linked.
mod blocks;
mod chain;
mod links;

use super::{
    align::{Now, align},
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

/// A repair on its way into a file.
pub(super) struct Mend<'f> {
    file: &'f SessionFile,
    path: Path,
    drafts: Vec<Draft>,
    edits: Edits,
    /// The new lines, by how many entries of the branch stand before them.
    added: BTreeMap<usize, Vec<New>>,
    /// The entry of the branch that stands last in the file.
    last: usize,
    /// Where on the branch each entry is.
    steps: HashMap<usize, usize>,
    ids: NewIds,
    /// Entries that get an id of their own.
    named: BTreeMap<usize, Name>,
    /// Entries whose links were changed.
    relinked: BTreeSet<usize>,
    /// Entries that stand elsewhere.
    moved: BTreeSet<usize>,
}

/// A new line of the branch, or one that moved here.
#[derive(Clone, Debug)]
struct New {
    id: Option<Name>,
    line: NewLine,
}

#[derive(Clone, Debug)]
enum NewLine {
    Message(Message),
    /// An entry, as it is now.
    Moved(usize, Box<str>),
}

impl<'f> Mend<'f> {
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

    /// The drafts of the messages that are repaired.
    pub(super) fn drafts(&self) -> &[Draft] {
        &self.drafts
    }

    /// Plans the repair of the messages, and the edits that it takes.
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

    /// The entries that get an id of their own.
    pub(super) fn named(&self) -> impl Iterator<Item = usize> {
        self.named.keys().copied()
    }

    /// The entries that are linked anew.
    pub(super) fn relinked(&self) -> impl Iterator<Item = usize> {
        self.relinked.iter().copied()
    }

    /// The entries that stand elsewhere.
    pub(super) fn moved(&self) -> impl Iterator<Item = usize> {
        self.moved.iter().copied()
    }

    /// The messages as they were, and what becomes of the lines.
    pub(super) fn into_parts(self) -> (Vec<Draft>, Edits) {
        (self.drafts, self.edits)
    }

    fn follow(&mut self, now: &[Now<'_>], gone: &[usize]) {
        for &message in gone {
            for node in self.drafts[message].nodes.clone() {
                self.edits.remove(node);
            }
        }
        // How many entries of the branch stand before what comes next.
        let first = self.path.nodes.first().and_then(|node| self.steps.get(node));
        let mut at = first.copied().unwrap_or(self.path.branch.len());
        for message in now {
            match *message {
                Now::Kept(was) => at = self.behind(was).unwrap_or(at),
                Now::Changed(was, message) => {
                    self.change(was, message, at);
                    at = self.behind(was).unwrap_or(at);
                }
                Now::Moved(was) => self.move_entry(self.drafts[was].nodes[0], at),
                Now::New(message) => self.add_message(at, message.clone()),
            }
        }
    }

    /// How many entries of the branch stand up to the last of a draft. A summary stands behind the
    /// first of what it is shown before.
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
