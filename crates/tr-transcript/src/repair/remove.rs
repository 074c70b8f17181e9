//! Mode `remove`: removes uses without results, and results without uses.
use super::{
    action::{ActionKind, Log, LossKind},
    items,
    zone::zone,
};
use crate::{
    format::{Format, Results},
    json::Piece,
    keys::{Key, Keys},
    message::{Kind, Message, Role},
    transcript::Transcript,
};
use std::ops::Range;

/// A message from which blocks are being removed.
struct Draft<'t> {
    message: &'t Message,
    /// Its index in the transcript.
    was: usize,
    kept: Vec<usize>,
}

/// With `members`, a message of which nothing is left goes, since its provider refuses it.
pub(super) fn repair(transcript: &Transcript, members: bool, log: &mut Log) -> Vec<Message> {
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
    let mut left = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let (was, is_whole) = (draft.was, draft.kept.len() == draft.message.blocks().len());
        match draft.finish(format) {
            Some(message) if members && !is_whole && message.says_nothing() => {
                log.act_on(was, ActionKind::RemoveEmptyMessage, left.len(), None);
            }
            message => left.extend(message),
        }
    }
    left
}

/// Pass 1: removes results without uses, from the end backwards.
fn remove_orphans(format: Format, drafts: &mut Vec<Draft<'_>>, log: &mut Log) {
    let are_blocks = format.rules().results == Results::Blocks;
    let names_pair = format.rules().names_pair;
    let answers = if are_blocks { Role::User } else { Role::Tool };
    let (mut asked, mut is_gone) = (UsesBefore::default(), vec![false; drafts.len()]);
    for i in (0..drafts.len()).rev() {
        if drafts[i].message.role() != answers {
            continue;
        }
        let calls = asked.before(format, drafts, i);
        let draft = &mut drafts[i];
        draft.kept.retain(|&block| {
            let kind = &draft.message.blocks()[block].kind;
            let (Kind::Result { id, .. }, Some(key)) = (kind, kind.key(names_pair)) else {
                return true;
            };
            let has_use = calls.is_some_and(|calls| calls.has(&key));
            if !has_use {
                log.act(ActionKind::RemoveOrphan, i, Some(id));
                log.lose(LossKind::Result, draft.was, id, None);
            }
            has_use
        });
        let had_nothing_known =
            draft.message.blocks().is_empty() && draft.message.unknown().is_some();
        if draft.kept.is_empty() && !had_nothing_known {
            is_gone[i] = true;
            log.act(ActionKind::RemoveEmptyMessage, i, None);
        }
    }
    let mut is_gone = is_gone.into_iter();
    drafts.retain(|_| !is_gone.next().unwrap_or_default());
}

/// The message before a run of result messages, and its uses.
#[derive(Default)]
struct UsesBefore {
    /// The range of messages that follow this one.
    run: Range<usize>,
    calls: Option<Keys>,
}

impl UsesBefore {
    /// The uses that a message's results may answer, queried from the last message backwards.
    fn before(&mut self, format: Format, drafts: &[Draft<'_>], at: usize) -> Option<&Keys> {
        if !self.run.contains(&at) {
            let are_blocks = format.rules().results == Results::Blocks;
            let is_passed = |draft: &Draft<'_>| {
                let is_result = !are_blocks && draft.message.role() == Role::Tool;
                is_result || draft.message.is_aside(format.rules())
            };
            let asked = drafts[..at].iter().rposition(|draft| !is_passed(draft));
            self.run = asked.map_or(0, |asked| asked + 1)..at + 1;
            let asked = asked.map(|asked| drafts[asked].message);
            let asked = asked.filter(|message| message.role() == Role::Assistant);
            self.calls = asked.map(|message| Keys::of(keys(format, message, true)));
        }
        self.calls.as_ref()
    }
}

/// Pass 2: removes uses without results, except in the last message.
fn remove_incomplete(format: Format, drafts: &mut [Draft<'_>], log: &mut Log) {
    let names_pair = format.rules().names_pair;
    let are_blocks = format.rules().results == Results::Blocks;
    let messages: Vec<_> = drafts.iter().map(|draft| draft.message).collect();
    let speaks = |message: &&Message| !message.is_aside(format.rules());
    let last = messages.iter().rposition(speaks);
    for (i, draft) in drafts.iter_mut().enumerate() {
        if draft.message.role() != Role::Assistant {
            continue;
        }
        let zone = zone(format, &messages, i);
        let behind = if are_blocks { i + 1 } else { zone.end };
        let is_live = last.is_none_or(|last| last < behind);
        if is_live {
            continue;
        }
        let results = messages[zone].iter().flat_map(|message| keys(format, message, false));
        let results = Keys::of(results);
        draft.kept.retain(|&block| {
            let kind = &draft.message.blocks()[block].kind;
            let (Kind::Use { id, name, .. }, Some(key)) = (kind, kind.key(names_pair)) else {
                return true;
            };
            let has_result = results.has(&key);
            if !has_result {
                log.act_on(draft.was, ActionKind::RemoveIncomplete, i, Some(id));
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
