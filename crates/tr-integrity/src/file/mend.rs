//! Brings a repair of the messages into the file: which lines change, and how they are linked.
use super::{
    align::{Now, align},
    drafts::Draft,
    edit::{Edits, Spot},
    entry::{FirstKept, Link, What},
    form::FileForm,
    instead::Instead,
    new_line::{self, NewIds},
    path::Path,
    session_file::SessionFile,
};
use crate::{
    json::{self, Piece},
    message::{Kind, Message},
    repair::{Repair, RepairPlan},
};
use std::collections::{BTreeMap, HashMap};

/// A repair on its way into a file.
pub(super) struct Mend<'f> {
    file: &'f SessionFile,
    path: Path,
    drafts: Vec<Draft>,
    edits: Edits,
    /// The new lines, by how many entries of the branch stand before them.
    added: BTreeMap<usize, Vec<New>>,
    /// Where on the branch each entry is.
    steps: HashMap<usize, usize>,
    ids: NewIds,
    /// Entries whose links were changed.
    pub(super) relinked: Vec<usize>,
}

/// A new line of the branch, or one that moved here.
#[derive(Clone, Debug)]
struct New {
    id: Option<Box<str>>,
    line: NewLine,
}

#[derive(Clone, Debug)]
enum NewLine {
    Message(Message),
    Moved(usize),
}

/// An entry of the branch as it will be.
#[derive(Clone, Copy, Debug)]
enum Step<'n> {
    Old(usize),
    New(&'n New, Spot),
}

impl<'f> Mend<'f> {
    pub(super) fn new(file: &'f SessionFile) -> Self {
        let path = file.path();
        let drafts = file.drafts(&path);
        let steps = path.branch.iter().enumerate().map(|(step, &node)| (node, step)).collect();
        let (edits, added) = (Edits::default(), BTreeMap::new());
        let ids = NewIds::of(file);
        Self { file, path, drafts, edits, added, steps, ids, relinked: Vec::new() }
    }

    /// The drafts of the messages that are repaired.
    pub(super) fn drafts(&self) -> &[Draft] {
        &self.drafts
    }

    /// Plans the repair of the messages, and the edits that it takes.
    pub(super) fn plan(&mut self, repair: Repair) -> Option<RepairPlan> {
        let transcript = self.file.transcript_of(&self.drafts)?;
        let plan = repair.plan(&transcript);
        if !plan.is_empty() {
            let (now, gone) = align(transcript.messages(), &plan);
            self.follow(&now, &gone);
        }
        if self.file.is_linked() {
            self.link();
            self.keep_next();
        }
        self.write_new();
        Some(plan)
    }

    pub(super) fn into_edits(self) -> Edits {
        self.edits
    }

    fn follow(&mut self, now: &[Now<'_>], gone: &[usize]) {
        for &message in gone {
            for node in self.drafts[message].nodes.clone() {
                self.edits.remove(node);
            }
        }
        for message in now {
            if let Now::Moved(was) = message {
                self.edits.remove(self.drafts[*was].nodes[0]);
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
                Now::Moved(was) => {
                    let node = self.drafts[was].nodes[0];
                    let id = self.file.entries[node].entry.id.clone();
                    self.add(at, New { id, line: NewLine::Moved(node) });
                }
                Now::New(message) => self.add_message(at, message.clone()),
            }
        }
    }

    /// How many entries of the branch stand up to the last of a draft.
    fn behind(&self, draft: usize) -> Option<usize> {
        let nodes = self.drafts[draft].nodes.iter();
        nodes.filter_map(|node| self.steps.get(node)).max().map(|step| step + 1)
    }

    fn add(&mut self, at: usize, new: New) {
        self.added.entry(at).or_default().push(new);
    }

    fn add_message(&mut self, at: usize, message: Message) {
        let before = self.path.branch[..at].last().map(|&node| &self.file.entries[node].entry);
        let id = self.ids.next(before.and_then(|entry| entry.id.as_deref()), &message);
        self.add(at, New { id, line: NewLine::Message(message) });
    }

    /// The branch as it will be, with what goes.
    fn branch(&self) -> impl Iterator<Item = Step<'_>> {
        let branch = &self.path.branch;
        (0..=branch.len()).flat_map(|at| {
            let spot = match (at.checked_sub(1), branch.first()) {
                (Some(before), _) => Spot::Behind(branch[before]),
                (None, Some(&first)) => Spot::Before(first),
                (None, None) => Spot::Last,
            };
            let new = self.added.get(&at).into_iter().flatten();
            let old = branch.get(at).copied().map(Step::Old);
            new.map(move |new| Step::New(new, spot)).chain(old)
        })
    }

    fn id<'s>(&'s self, step: Step<'s>) -> Option<&'s str> {
        match step {
            Step::Old(node) => self.file.entries[node].entry.id.as_deref(),
            Step::New(new, _) => new.id.as_deref(),
        }
    }

    /// A draft's message is another now.
    fn change(&mut self, was: usize, now: &Message, at: usize) {
        let draft = &self.drafts[was];
        let (file, node) = (self.file, draft.nodes[0]);
        match file.form() {
            FileForm::ClaudeCode => self.change_blocks(was, now, at),
            FileForm::OpenClaw { .. } => self.edits.set_member(file, node, "message", now.raw()),
            FileForm::Messages(_) | FileForm::Other => self.edits.set(node, now.raw().to_owned()),
        }
    }

    /// Claude Code's lines hold a block or more of a message.
    fn change_blocks(&mut self, was: usize, now: &Message, at: usize) {
        let draft = &self.drafts[was];
        let mut lines: HashMap<usize, Vec<Piece>> = HashMap::new();
        let mut new = Vec::new();
        let old: Vec<_> = draft.blocks.iter().map(|&at| (at, self.file.block(at))).collect();
        let kind = |&(node, block): &(usize, usize)| {
            self.file.entries[node].entry.as_message().map(|message| &message.blocks()[block].kind)
        };
        // Blocks that stay are told by their texts, others by what they are.
        let mut is_used = vec![false; old.len()];
        let mut homes: Vec<Option<usize>> = vec![None; now.blocks().len()];
        for (place, block) in now.blocks().iter().enumerate() {
            let same =
                (0..old.len()).find(|&at| !is_used[at] && old[at].1 == now.text(&block.span));
            if let Some(at) = same {
                (is_used[at], homes[place]) = (true, Some(at));
            }
        }
        for (place, block) in now.blocks().iter().enumerate() {
            if homes[place].is_some() {
                continue;
            }
            let is_like =
                |at: &usize| kind(&old[*at].0).is_some_and(|old| may_become(old, &block.kind));
            if let Some(at) = (0..old.len()).filter(|at| !is_used[*at]).find(is_like) {
                (is_used[at], homes[place]) = (true, Some(at));
            }
        }
        let mut last_text = None;
        for (place, block) in now.blocks().iter().enumerate() {
            let text = now.text(&block.span).to_owned();
            match homes[place] {
                Some(home) => {
                    let ((node, was), before) = &old[home];
                    let was = (*before == text).then_some(*was);
                    lines.entry(*node).or_default().push(Piece { was, text });
                    last_text = Some(*node);
                }
                // What is left of an orphan's content follows its beginning.
                None if !block.kind.is_result() && last_text.is_some() => {
                    let node = last_text.unwrap_or_default();
                    lines.entry(node).or_default().push(Piece { was: None, text });
                }
                None => new.push(text),
            }
        }
        for node in draft.nodes.clone() {
            let pieces = lines.remove(&node).unwrap_or_default();
            self.change_line(node, &pieces);
        }
        if !new.is_empty() {
            let message = crate::Format::AnthropicMessages.hold_results(&new);
            message.into_iter().for_each(|message| self.add_message(at, message));
        }
    }

    fn change_line(&mut self, node: usize, pieces: &[Piece]) {
        let Some(message) = self.file.entries[node].entry.as_message() else { return };
        let stays = |(at, piece): (usize, &Piece)| piece.was == Some(at);
        if pieces.len() == message.blocks().len() && pieces.iter().enumerate().all(stays) {
            return;
        }
        if pieces.is_empty() {
            return self.edits.remove(node);
        }
        if let Some(message) = crate::Format::AnthropicMessages.rewrite(message, pieces) {
            self.edits.set_member(self.file, node, "message", message.raw());
        }
    }

    /// The ids of lines that come or moved.
    fn new_ids(&self) -> impl Iterator<Item = &str> {
        self.added.values().flatten().filter_map(|new| new.id.as_deref())
    }

    /// Links each entry of the branch to the one before it.
    fn link(&mut self) {
        let mut links = Vec::new();
        let mut instead = Instead::default();
        let mut parent: Option<&str> = None;
        for (at, step) in self.branch().enumerate() {
            let id = self.id(step);
            if let Step::Old(node) = step {
                if self.edits.is_gone(node) {
                    instead.go(id, parent);
                    continue;
                }
                let is_right = match (&self.file.entries[node].entry.link, parent) {
                    (Link::Before, _) | (Link::Root, None) => true,
                    (Link::Root, Some(_)) => false,
                    (Link::To(to), Some(parent)) => **to == *parent,
                    // What follows a first entry that went begins the session.
                    (Link::To(_), None) => at == 0,
                };
                if !is_right {
                    links.push((node, parent.map(Box::from)));
                }
            }
            if let Some(id) = id {
                instead.next(id);
                parent = Some(id);
            }
        }
        self.link_others(&mut instead, &mut links);
        let name = new_line::parent_member(self.file.form());
        for (node, parent) in links {
            let value = parent.map_or("null".to_owned(), |parent| json::quote(&parent));
            self.edits.set_member(self.file, node, name, &value);
            self.relinked.push(node);
        }
    }

    /// Links what is beside the branch and named an entry that went, and what a compaction keeps.
    fn link_others(&self, instead: &mut Instead, links: &mut Vec<(usize, Option<Box<str>>)>) {
        let entries = || self.file.entries.iter().map(|located| &located.entry).enumerate();
        let is_gone = |node: usize| self.edits.is_gone(node);
        let is_beside = |node: usize| !self.steps.contains_key(&node);
        for (_, entry) in entries().filter(|(node, _)| is_gone(*node) && is_beside(*node)) {
            if let (Some(id), Link::To(to)) = (&entry.id, &entry.link) {
                instead.parents.insert(id.clone(), Some(to.clone()));
            }
        }
        // Two entries may have one id: what is still there stays a parent.
        for (_, entry) in entries().filter(|(node, _)| !is_gone(*node)) {
            entry.id.as_ref().map(|id| instead.parents.remove(id));
        }
        for id in self.new_ids() {
            instead.parents.remove(id);
        }
        for (node, entry) in entries().filter(|(node, _)| !is_gone(*node) && is_beside(*node)) {
            if let Link::To(to) = &entry.link
                && instead.parents.contains_key(to)
            {
                links.push((node, instead.parent_of(to)));
            }
        }
    }

    /// Lets compactions keep from the next entry on, where the first that they keep went.
    fn keep_next(&mut self) {
        let mut instead = Instead::default();
        for step in self.branch() {
            match (step, self.id(step)) {
                (Step::Old(node), id) if self.edits.is_gone(node) => instead.go(id, None),
                (_, Some(id)) => instead.next(id),
                (_, None) => {}
            }
        }
        for id in self.new_ids() {
            instead.nexts.remove(id);
        }
        for node in self.path.branch.clone() {
            if let What::Compaction(FirstKept::Id(id)) = &self.file.entries[node].entry.what
                && let Some(next) = instead.nexts.get(id)
            {
                self.edits.set_member(self.file, node, "firstKeptEntryId", &json::quote(next));
            }
        }
    }

    /// Writes the lines that come, each linked to the one before it.
    fn write_new(&mut self) {
        let mut parent: Option<&str> = None;
        let mut neighbour = self.path.nodes.first().copied();
        let mut lines = Vec::new();
        for step in self.branch() {
            match step {
                Step::Old(node) if self.edits.is_gone(node) => continue,
                Step::Old(node) => neighbour = Some(node),
                Step::New(New { id, line }, spot) => {
                    let text = match line {
                        NewLine::Moved(node) => new_line::moved(self.file, *node, parent),
                        NewLine::Message(message) => {
                            new_line::message(self.file, id.as_deref(), parent, neighbour, message)
                        }
                    };
                    lines.push((spot, text));
                }
            }
            parent = self.id(step).or(parent);
        }
        for (spot, text) in lines {
            self.edits.insert(spot, text);
        }
    }
}

/// Whether a repair may have made one block of the other.
const fn may_become(old: &Kind, new: &Kind) -> bool {
    matches!(
        (old, new),
        (Kind::Use { .. }, Kind::Use { .. })
            | (Kind::Result { .. }, Kind::Result { .. } | Kind::Text(_))
    )
}
