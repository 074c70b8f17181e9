//! Mode `remove`: removes uses without results, and results without uses, as the validator finds them.

use super::{
    action::{ActionKind, Log, LossKind},
    items::{Placed, settle_reasoning},
};
use crate::{
    format::{Format, Results},
    json::Piece,
    message::{Kind, Message, Role},
    transcript::Transcript,
    validate::Validator,
};
use std::collections::{BTreeMap, BTreeSet};

/// With `members`, a message of which nothing is left goes, since its provider refuses it.
pub(super) fn repair(transcript: &Transcript, members: bool, log: &mut Log) -> Vec<Message> {
    let format = transcript.format();
    let (was, messages): (Vec<_>, _) = without_orphans(transcript, log).into_iter().unzip();
    let mut kept = transcript.clone();
    kept.set_messages(messages);
    let mut left = without_incomplete(&kept, &was, members, log);
    if format.rules().results == Results::Items {
        left = settle_reasoning(format, left, false, transcript.applies(), log);
    }
    left.into_iter().map(|(_, message)| message).collect()
}

/// The blocks that break this rule, by their messages.
fn breaking(transcript: &Transcript, rule: u8) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut blocks = BTreeMap::<usize, BTreeSet<usize>>::new();
    let validator = Validator::of(transcript);
    for finding in validator.findings().iter().filter(|finding| finding.fault.rule() == rule) {
        let block = finding.block_index.unwrap_or_default();
        blocks.entry(finding.message_index).or_default().insert(block);
    }
    blocks
}

/// Pass 1: removes results without uses, from the end backwards. Returns the rest with its indexes.
fn without_orphans(transcript: &Transcript, log: &mut Log) -> Vec<(usize, Message)> {
    let format = transcript.format();
    let are_blocks = format.rules().results == Results::Blocks;
    let answers = if are_blocks { Role::User } else { Role::Tool };
    let mut orphans = breaking(transcript, 1);
    let mut left = Vec::with_capacity(transcript.len());
    for (at, message) in transcript.messages().iter().enumerate().rev() {
        if message.role() != answers {
            left.push((at, message.clone()));
            continue;
        }
        let orphans = orphans.remove(&at).unwrap_or_default();
        for &block in &orphans {
            let Kind::Result { id, .. } = &message.blocks()[block].kind else { continue };
            log.act(ActionKind::RemoveOrphan, at, Some(id));
            log.lose(LossKind::Result, at, id, None);
        }
        let had_nothing_known = message.blocks().is_empty() && message.body.unknown.is_some();
        if orphans.len() == message.blocks().len() && !had_nothing_known {
            log.act(ActionKind::RemoveEmptyMessage, at, None);
        } else {
            left.extend(without(format, message, &orphans).map(|message| (at, message)));
        }
    }
    left.reverse();
    left
}

/// Pass 2: removes uses without results, except those of the live tail.
fn without_incomplete(
    transcript: &Transcript,
    was: &[usize],
    members: bool,
    log: &mut Log,
) -> Vec<Placed> {
    let format = transcript.format();
    let incomplete = breaking(transcript, 2);
    let messages = transcript.messages();
    // An item goes with its use.
    let are_items = format.rules().results == Results::Items;
    for (removed, (&at, uses)) in incomplete.iter().enumerate() {
        let index = if are_items { at - removed } else { at };
        for &block in uses {
            let Kind::Use { id, name, .. } = &messages[at].blocks()[block].kind else { continue };
            log.act_on(was[at], ActionKind::RemoveIncomplete, index, Some(id));
            log.lose(LossKind::Call, was[at], id, Some(name));
        }
    }
    let mut left = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let Some(uses) = incomplete.get(&at) else {
            left.push((Some(was[at]), message.clone()));
            continue;
        };
        match without(format, message, uses) {
            Some(message) if members && message.says_nothing() => {
                log.act_on(was[at], ActionKind::RemoveEmptyMessage, left.len(), None);
            }
            message => left.extend(message.map(|message| (Some(was[at]), message))),
        }
    }
    left
}

/// A message without these blocks; `None` if it cannot exist without them.
fn without(format: Format, message: &Message, gone: &BTreeSet<usize>) -> Option<Message> {
    if gone.is_empty() {
        return Some(message.clone());
    }
    let stay = message.blocks().iter().enumerate().filter(|(at, _)| !gone.contains(at));
    let piece = |(at, block)| Piece { was: Some(at), text: format.listed(message, block, None) };
    format.rewrite(message, &stay.map(piece).collect::<Vec<_>>())
}
