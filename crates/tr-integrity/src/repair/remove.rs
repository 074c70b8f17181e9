//! 002's algorithm to the letter: what has no pair is removed.
use super::{ActionKind, Log, LossKind, zone};
use crate::{
    format::Format,
    json::Piece,
    message::{Kind, Message, Role},
    transcript::Transcript,
};
use std::collections::HashSet;

/// A message while blocks are taken from it.
struct Draft<'t> {
    message: &'t Message,
    /// Where it was in the transcript.
    was: usize,
    kept: Vec<usize>,
}

pub(super) fn repair(transcript: &Transcript, log: &mut Log) -> Vec<Message> {
    let format = transcript.format();
    let drafts = transcript.messages().iter().enumerate().map(|(was, message)| {
        let kept = (0..message.blocks().len()).collect();
        Draft { message, was, kept }
    });
    let mut drafts: Vec<_> = drafts.collect();
    remove_orphans(format, &mut drafts, log);
    remove_incomplete(format, &mut drafts, log);
    drafts.into_iter().map(|draft| draft.finish(format)).collect()
}

/// Pass 1: results without their uses, from the end on.
fn remove_orphans(format: Format, drafts: &mut Vec<Draft<'_>>, log: &mut Log) {
    let answers = answering(format);
    for i in (0..drafts.len()).rev() {
        if drafts[i].message.role() != answers {
            continue;
        }
        let asked = match format {
            Format::AnthropicMessages => drafts[..i].last(),
            Format::OpenAiChat | Format::OpenClaw => {
                drafts[..i].iter().rfind(|d| d.message.role() != Role::Tool)
            }
        };
        let asked = asked.filter(|draft| draft.message.role() == Role::Assistant);
        let uses: HashSet<&str> =
            asked.map(|d| d.message.tool_uses().collect()).unwrap_or_default();
        let draft = &mut drafts[i];
        draft.kept.retain(|&block| {
            let Kind::Result { id, .. } = &draft.message.blocks()[block].kind else { return true };
            let has_use = uses.contains(&**id);
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
    for i in 0..drafts.len() {
        if drafts[i].message.role() != Role::Assistant {
            continue;
        }
        let messages: Vec<_> = drafts.iter().map(|draft| draft.message).collect();
        let zone = zone(format, &messages, i);
        let is_live = match format {
            Format::AnthropicMessages => i + 1 == drafts.len(),
            Format::OpenAiChat | Format::OpenClaw => zone.end == drafts.len(),
        };
        if is_live {
            continue;
        }
        let results: HashSet<Box<str>> = drafts[zone]
            .iter()
            .flat_map(|draft| draft.message.tool_results())
            .map(Into::into)
            .collect();
        let draft = &mut drafts[i];
        draft.kept.retain(|&block| {
            let Kind::Use { id, name, .. } = &draft.message.blocks()[block].kind else {
                return true;
            };
            let has_result = results.contains(id);
            if !has_result {
                log.act(ActionKind::RemoveIncomplete, i, Some(id));
                log.lose(LossKind::Call, draft.was, id, Some(name));
            }
            has_result
        });
    }
}

/// Who brings results.
const fn answering(format: Format) -> Role {
    match format {
        Format::AnthropicMessages => Role::User,
        Format::OpenAiChat | Format::OpenClaw => Role::Tool,
    }
}

impl Draft<'_> {
    fn finish(self, format: Format) -> Message {
        let blocks = self.message.blocks();
        if self.kept.len() == blocks.len() {
            return self.message.clone();
        }
        let piece = |&block: &usize| Piece {
            was: Some(block),
            text: format.listed(self.message, &blocks[block], None),
        };
        format.rewrite(self.message, &self.kept.iter().map(piece).collect::<Vec<_>>())
    }
}
