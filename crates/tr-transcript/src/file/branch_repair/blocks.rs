//! Writes changed messages back into their lines.
use super::BranchRepair;
use crate::{
    file::form::FileForm,
    json::Piece,
    message::{Kind, Message, Role},
};
use std::collections::{HashMap, VecDeque};

impl BranchRepair<'_> {
    /// Replaces the message of a draft.
    pub(super) fn change(&mut self, was: usize, now: &Message, at: usize) {
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
            homes[place] = match block.kind {
                Kind::Use { .. } => uses.next(),
                Kind::Result { .. } | Kind::Text(_) => results.next(),
                _ => None,
            };
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
                // The rest of an orphan's content follows its first block.
                None if !block.kind.is_result() && last_text.is_some() => {
                    let node = last_text.unwrap_or_default();
                    lines.entry(node).or_default().push(Piece { was: None, text });
                }
                None => new.push(text),
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
        let is_blank = message.blocks().is_empty() && message.unknown().is_none();
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
