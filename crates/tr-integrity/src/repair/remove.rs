//! 002's algorithm to the letter: what has no pair is removed.
use super::{ActionKind, Log, LossKind, items, zone};
use crate::{
    format::{Format, Results},
    json::Piece,
    message::{Key, Kind, Message, Role},
    transcript::Transcript,
};

/// A message while blocks are taken from it.
struct Draft<'t> {
    message: &'t Message,
    /// Where it was in the transcript.
    was: usize,
    kept: Vec<usize>,
}

pub(super) fn repair(transcript: &Transcript, log: &mut Log) -> Vec<Message> {
    let format = transcript.format();
    if format.rules().results == Results::Items {
        return items::remove(transcript, log);
    }
    let drafts = transcript.messages().iter().enumerate().map(|(was, message)| {
        let kept = (0..message.blocks().len()).collect();
        Draft { message, was, kept }
    });
    let mut drafts: Vec<_> = drafts.collect();
    remove_orphans(format, &mut drafts, log);
    remove_incomplete(format, &mut drafts, log);
    drafts.into_iter().filter_map(|draft| draft.finish(format)).collect()
}

/// Pass 1: results without their uses, from the end on.
fn remove_orphans(format: Format, drafts: &mut Vec<Draft<'_>>, log: &mut Log) {
    let are_blocks = format.rules().results == Results::Blocks;
    let names_pair = format.rules().names_pair;
    let answers = if are_blocks { Role::User } else { Role::Tool };
    for i in (0..drafts.len()).rev() {
        if drafts[i].message.role() != answers {
            continue;
        }
        let mut before = drafts[..i].iter().rev();
        let asked = before.find(|draft| are_blocks || draft.message.role() != Role::Tool);
        let asked = asked.filter(|draft| draft.message.role() == Role::Assistant);
        let uses: Vec<_> = asked.into_iter().flat_map(|d| keys(format, d.message, true)).collect();
        let draft = &mut drafts[i];
        draft.kept.retain(|&block| {
            let kind = &draft.message.blocks()[block].kind;
            let (Kind::Result { id, .. }, Some(key)) = (kind, kind.key(names_pair)) else {
                return true;
            };
            let has_use = uses.iter().any(|used| used.pairs(&key));
            if !has_use {
                log.act(ActionKind::RemoveOrphan, i, Some(id));
                log.lose(LossKind::Result, draft.was, id, None);
            }
            has_use
        });
        if draft.kept.is_empty() {
            drafts.remove(i);
            log.act(ActionKind::RemoveEmptyMessage, i, None);
        }
    }
}

/// Pass 2: uses without their results, but for the last message's.
fn remove_incomplete(format: Format, drafts: &mut [Draft<'_>], log: &mut Log) {
    let names_pair = format.rules().names_pair;
    for i in 0..drafts.len() {
        if drafts[i].message.role() != Role::Assistant {
            continue;
        }
        let messages: Vec<_> = drafts.iter().map(|draft| draft.message).collect();
        let zone = zone(format, &messages, i);
        let are_blocks = format.rules().results == Results::Blocks;
        let is_live = drafts.len() == if are_blocks { i + 1 } else { zone.end };
        if is_live {
            continue;
        }
        let results: Vec<_> =
            drafts[zone].iter().flat_map(|draft| keys(format, draft.message, false)).collect();
        let draft = &mut drafts[i];
        draft.kept.retain(|&block| {
            let kind = &draft.message.blocks()[block].kind;
            let (Kind::Use { id, name, .. }, Some(key)) = (kind, kind.key(names_pair)) else {
                return true;
            };
            let has_result = results.iter().any(|result| result.pairs(&key));
            if !has_result {
                log.act(ActionKind::RemoveIncomplete, i, Some(id));
                log.lose(LossKind::Call, draft.was, id, Some(name));
            }
            has_result
        });
    }
}

/// The keys of a message's uses, or of its results.
fn keys(format: Format, message: &Message, of_uses: bool) -> impl Iterator<Item = Key> {
    let names_pair = format.rules().names_pair;
    let kinds = message.blocks().iter().map(|block| &block.kind);
    let kinds = kinds.filter(move |kind| matches!(kind, Kind::Use { .. }) == of_uses);
    kinds.filter_map(move |kind| kind.key(names_pair))
}

impl Draft<'_> {
    fn finish(self, format: Format) -> Option<Message> {
        let blocks = self.message.blocks();
        if self.kept.len() == blocks.len() {
            return Some(self.message.clone());
        }
        let piece = |&block: &usize| Piece {
            was: Some(block),
            text: format.listed(self.message, &blocks[block], None),
        };
        format.rewrite(self.message, &self.kept.iter().map(piece).collect::<Vec<_>>())
    }
}
