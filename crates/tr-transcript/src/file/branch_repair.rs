//! Applies a repair of the messages to the file: changed lines and their links.
mod chain;
mod links;

use super::{
    align::{Aligned, align},
    drafts::Draft,
    edit::Edits,
    form::FileForm,
    new_line::NewIds,
    path::Path,
    session_file::SessionFile,
};
use crate::{
    json::Piece,
    message::{Kind, Message, Role},
    name::Name,
    repair::{Repair, RepairPlan},
};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

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
        let (path, drafts) = file.branch();
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

    /// The line of a message that is about this call: one that changes, if there is one.
    pub(super) fn line_of(&self, draft: &Draft, id: Option<&str>) -> Option<usize> {
        let names = |node: &usize| {
            let message = self.file.entries[*node].entry.as_message();
            let mut ids =
                message.into_iter().flat_map(|it| it.tool_uses().chain(it.tool_results()));
            ids.any(|named| Some(named) == id)
        };
        let mut nodes = draft.nodes.iter().copied().filter(|node| names(node));
        let changes = |node: &usize| self.edits.is_touched(*node);
        nodes.clone().find(changes).or_else(|| nodes.next()).or(draft.nodes.first().copied())
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

    /// Replaces the message of a draft.
    fn change(&mut self, was: usize, now: &Message, at: usize) {
        let draft = &self.drafts[was];
        let (file, node) = (self.file, draft.nodes[0]);
        match file.form() {
            FileForm::ClaudeCode | FileForm::ClaudeSubagent => self.change_blocks(was, now, at),
            FileForm::Codex => self.edits.set_member(file, node, "payload", now.raw()),
            FileForm::OpenClaw { .. } => self.edits.set_member(file, node, "message", now.raw()),
            FileForm::Messages(_) | FileForm::Other => self.edits.set(node, now.raw().to_owned()),
        }
    }

    /// Claude Code's lines each hold one or more blocks of a message.
    fn change_blocks(&mut self, was: usize, now: &Message, at: usize) {
        let draft = &self.drafts[was];
        let mut lines: HashMap<usize, Vec<Piece>> = HashMap::new();
        let mut new = Vec::new();
        let old: Vec<_> = draft.blocks.iter().map(|&at| (at, self.file.block(at))).collect();
        let kind = |&(node, block): &(usize, usize)| {
            self.file.entries[node].entry.as_message().map(|message| &message.blocks()[block].kind)
        };
        // Unchanged blocks are matched by their text, changed ones by their kind.
        let mut same: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (at, (_, text)) in old.iter().enumerate() {
            same.entry(text).or_default().push_back(at);
        }
        let texts = now.blocks().iter().map(|block| now.text(&block.span));
        let stay = texts.map(|text| same.get_mut(text).and_then(VecDeque::pop_front));
        let mut homes: Vec<Option<usize>> = stay.collect();
        let mut is_used = vec![false; old.len()];
        homes.iter().flatten().for_each(|&at| is_used[at] = true);
        let others = || (0..old.len()).filter(|&at| !is_used[at]);
        let is_of = |at: &usize, is: fn(&Kind) -> bool| kind(&old[*at].0).is_some_and(is);
        let mut uses = others().filter(|at| is_of(at, |kind| matches!(kind, Kind::Use { .. })));
        let mut results = others().filter(|at| is_of(at, Kind::is_result));
        for (place, block) in now.blocks().iter().enumerate() {
            if homes[place].is_some() {
                continue;
            }
            // The old block from which a repair made this one.
            let is_at = now.blocks().len() == old.len() && !is_used[place];
            homes[place] = match block.kind {
                Kind::Text(_) if is_at && is_of(&place, |kind| *kind == Kind::Other) => Some(place),
                Kind::Use { .. } => uses.next(),
                Kind::Result { .. } | Kind::Text(_) => results.next(),
                _ => None,
            };
        }
        let mut last_text = None;
        for (place, block) in now.blocks().iter().enumerate() {
            let text = now.text(&block.span).to_owned();
            match (homes[place], last_text) {
                (Some(home), _) => {
                    let ((node, was), before) = &old[home];
                    let was = (*before == text).then_some(*was);
                    lines.entry(*node).or_default().push(Piece { was, text });
                    last_text = Some(*node);
                }
                // The rest of an orphan's content follows its first block.
                (None, Some(node)) if !block.kind.is_result() => {
                    lines.entry(node).or_default().push(Piece { was: None, text });
                }
                (None, _) => new.push(text),
            }
        }
        for node in draft.nodes.clone() {
            let pieces = lines.remove(&node).unwrap_or_default();
            self.change_line(node, &pieces, at);
        }
        if !new.is_empty() {
            let message = crate::Format::AnthropicMessages.hold_results(&new);
            message.into_iter().for_each(|message| self.add_message(at, message));
        }
    }

    fn change_line(&mut self, node: usize, pieces: &[Piece], at: usize) {
        let Some(message) = self.file.entries[node].entry.as_message() else { return };
        let stays = |(at, piece): (usize, &Piece)| piece.was == Some(at);
        // A user's line with the text `""` is removed with the block that Claude Code sent for it.
        let is_blank = message.blocks().is_empty() && message.body.unknown.is_none();
        let is_blank = is_blank && message.role() == Role::User;
        if !is_blank
            && pieces.len() == message.blocks().len()
            && pieces.iter().enumerate().all(stays)
        {
            return;
        }
        if pieces.is_empty() {
            return self.edits.remove(node);
        }
        if let Some(message) = crate::Format::AnthropicMessages.rewrite(message, pieces) {
            self.edits.set_member(self.file, node, "message", message.raw());
            // A line beside the branch, or between the lines of a step, may only hold results.
            let is_results = message.blocks().iter().all(|block| block.kind.is_result());
            let is_among = self.steps.get(&node).is_none_or(|&step| step < at);
            if message.role() == Role::User && !is_results && is_among {
                self.move_entry(node, at);
            }
        }
    }
}
