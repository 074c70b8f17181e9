//! Repairs that only concern items: their own ids, and reasoning that its provider only accepts
//! with the output that followed it.
use super::{
    action::{ActionKind, Log, LossKind},
    pairs::is_random,
};
use crate::{
    format::{Applies, Format, Why},
    json,
    message::{Kind, Message, Role},
    transcript::Transcript,
};
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

/// An item, and its index in the transcript if it was there.
pub(super) type Placed = (Option<usize>, Message);

/// What the provider may have stored that is not in the transcript.
#[derive(Clone, Copy)]
pub(super) struct Elsewhere {
    /// Uses that results of the transcript answer.
    pub(super) uses: bool,
    /// Results of uses of the transcript.
    pub(super) results: bool,
}

impl Elsewhere {
    pub(super) fn of(transcript: &Transcript) -> Self {
        let mut items = transcript.messages().iter();
        let results = items.any(|item| is(item, &Kind::Reference));
        Self { uses: results || transcript.continues, results }
    }
}

/// Makes the ids of items unique: a copy is removed, another item with the same id loses its id.
/// Equal messages are no copies, because the same text may occur twice.
pub(super) fn unique(format: Format, items: &[Message], log: &mut Log) -> Vec<(usize, Message)> {
    let mut first: HashMap<&str, &Message> = HashMap::new();
    let mut kept = Vec::with_capacity(items.len());
    for (was, item) in items.iter().enumerate() {
        let id = item.item().map(|item| &*item.id);
        match id.and_then(|id| first.get(id)) {
            None => {
                first.extend(id.map(|id| (id, item)));
                kept.push((was, item.clone()));
            }
            Some(same) if is(item, &Kind::Reference) || is_copy(same, item) => {
                log.act(ActionKind::RemoveDuplicate, was, id);
            }
            Some(_) if is(item, &Kind::Reasoning) => lose_reasoning(was, item, log),
            Some(_) => {
                log.act(ActionKind::UnlinkItem, was, id);
                kept.push((was, unlinked(format, item)));
            }
        }
    }
    kept
}

/// Removes reasoning that no output of the model follows, or that its provider has not stored. Its neighbors may once have followed it:
/// they lose the ids with which the provider would demand it. Reasoning at the end stays, unless
/// the tail is to be closed.
pub(super) fn settle_reasoning(
    format: Format,
    items: Vec<Placed>,
    close_tail: bool,
    applies: Applies,
    log: &mut Log,
) -> Vec<Placed> {
    let (mut lone, mut waiting) = (HashSet::new(), Vec::new());
    for (at, (_, item)) in items.iter().enumerate() {
        match item.role() {
            _ if item.all_refused(applies).any(|it| matches!(it.why, Why::Unstored(_))) => {
                lone.insert(at);
            }
            _ if is(item, &Kind::Reasoning) => waiting.push(at),
            Role::Tool => {}
            Role::System | Role::User => lone.extend(waiting.drain(..)),
            _ => waiting.clear(),
        }
    }
    if close_tail {
        lone.extend(waiting);
    }
    if lone.is_empty() {
        return items;
    }
    let doubtful = doubtful(&items, &lone, close_tail);
    let mut kept = Vec::with_capacity(items.len());
    for (at, (was, item)) in items.into_iter().enumerate() {
        let place = was.unwrap_or_default();
        if lone.contains(&at) {
            lose_reasoning(place, &item, log);
            continue;
        }
        match item.item().filter(|_| doubtful.contains(&at)) {
            Some(id) => {
                log.act(ActionKind::UnlinkItem, place, Some(&id.id));
                kept.push((was, unlinked(format, &item)));
            }
            None => kept.push((was, item)),
        }
    }
    kept
}

/// The model's items next to removed reasoning, unless other reasoning in their run precedes them.
/// Excludes a live tail.
fn doubtful(items: &[Placed], lone: &HashSet<usize>, close_tail: bool) -> HashSet<usize> {
    let is_model = |at: &usize| items[*at].1.role() == Role::Assistant;
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in (0..items.len()).filter(is_model) {
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end += 1,
            None => runs.push(at..at + 1),
        }
    }
    let tail = items.iter().rposition(|(_, item)| item.role() != Role::Tool);
    let is_live = |run: &Range<usize>| !close_tail && tail.is_none_or(|last| last < run.end);
    let explains = |at: usize| is(&items[at].1, &Kind::Reasoning) && !lone.contains(&at);
    let mut doubtful = HashSet::new();
    for (number, run) in runs.iter().enumerate() {
        // After removed reasoning, a run only holds more of it.
        let trailing = run.clone().rev().take_while(|at| lone.contains(at)).count();
        if trailing == 0 {
            continue;
        }
        let before = run.start..run.end - trailing;
        let behind = runs.get(number + 1).filter(|run| !is_live(run)).cloned();
        for mut part in [Some(before), behind].into_iter().flatten() {
            if !part.clone().any(explains) {
                doubtful.extend(part.by_ref().filter(|at| !lone.contains(at)));
            }
        }
    }
    doubtful
}

/// Whether the two are the same item, and no messages: these have no blocks. With sequential ids,
/// an equal call is a separate call.
fn is_copy(item: &Message, other: &Message) -> bool {
    let pairs = item.tool_uses().next().or(item.tool_results().next()).is_some();
    let is_one = !pairs || item.item().is_some_and(|item| is_random(&item.id));
    item.raw() == other.raw() && !item.blocks().is_empty() && is_one
}

/// Whether the item is a single block of this kind.
pub(super) fn is(item: &Message, kind: &Kind) -> bool {
    item.blocks().iter().any(|block| block.kind == *kind)
}

fn lose_reasoning(was: usize, item: &Message, log: &mut Log) {
    let id = item.item().map_or("", |item| &*item.id);
    log.act(ActionKind::RemoveReasoning, was, Some(id));
    log.lose(LossKind::Reasoning, was, id, None);
}

/// The item without its own id, so that the provider treats it as new.
fn unlinked(format: Format, item: &Message) -> Message {
    let Some(id) = item.item() else { return item.clone() };
    item.with_raw_of(format.own(json::without_member(item.raw(), &id.at)))
}
