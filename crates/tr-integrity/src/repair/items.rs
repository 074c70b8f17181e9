//! What is particular to a form of items: their own ids, and reasoning that its provider takes
//! only with what follows from it.
use super::{ActionKind, Log, LossKind};
use crate::{
    format::Format,
    json,
    message::{Block, Kind, Message, Role},
    transcript::Transcript,
};
use std::collections::{HashMap, HashSet};

/// An item, and where it was in the transcript, if it was there.
pub(super) type Placed = (Option<usize>, Message);

/// What the provider may know that is not in the transcript.
#[derive(Clone, Copy)]
pub(super) struct Elsewhere {
    /// Uses that results here answer.
    pub(super) uses: bool,
    /// Results that uses here have.
    pub(super) results: bool,
}

impl Elsewhere {
    pub(super) fn of(transcript: &Transcript) -> Self {
        let mut items = transcript.messages().iter();
        let results = items.any(|item| is(item, &Kind::Reference));
        Self { uses: results || transcript.continues(), results }
    }
}

/// Makes the ids of items unique: a copy goes, another item of that id loses the id.
pub(super) fn unique(format: Format, items: &[Message], log: &mut Log) -> Vec<(usize, Message)> {
    let mut first: HashMap<&str, &Message> = HashMap::new();
    let mut kept = Vec::with_capacity(items.len());
    for (was, item) in items.iter().enumerate() {
        let Some(id) = item.item().map(|item| &*item.id) else {
            kept.push((was, item.clone()));
            continue;
        };
        match first.get(id) {
            None => {
                first.insert(id, item);
                kept.push((was, item.clone()));
            }
            Some(same) if same.raw() == item.raw() || is(item, &Kind::Reference) => {
                log.act(ActionKind::RemoveDuplicate, was, Some(id));
            }
            Some(_) if is(item, &Kind::Reasoning) => lose_reasoning(was, item, log),
            Some(_) => {
                log.act(ActionKind::UnlinkItem, was, Some(id));
                kept.push((was, unlinked(format, item)));
            }
        }
    }
    kept
}

/// Takes out reasoning that nothing of the model's follows. Its neighbours may be what followed
/// once: they lose the ids by which the provider would ask for it. At the end it waits, unless the
/// tail is to be closed.
pub(super) fn settle_reasoning(
    format: Format,
    items: Vec<Placed>,
    close_tail: bool,
    log: &mut Log,
) -> Vec<Placed> {
    let (mut lone, mut waiting) = (HashSet::new(), Vec::new());
    for (at, (_, item)) in items.iter().enumerate() {
        match item.role() {
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

/// The model's items around lone reasoning, as far as no other reasoning of their run explains
/// them. A live tail is left alone.
fn doubtful(items: &[Placed], lone: &HashSet<usize>, close_tail: bool) -> HashSet<usize> {
    let is_model = |at: usize| items[at].1.role() == Role::Assistant;
    let mut doubtful = HashSet::new();
    for &at in lone {
        let before = (0..at).rev().take_while(|&at| is_model(at));
        let behind = (at + 1..items.len()).skip_while(|&at| !is_model(at));
        let behind: Vec<_> = behind.take_while(|&at| is_model(at)).collect();
        let rest = behind.last().map_or(items.len(), |last| last + 1);
        let is_live = !close_tail && items[rest..].iter().all(|(_, i)| i.role() == Role::Tool);
        let runs = [before.collect(), if is_live { Vec::new() } else { behind }];
        for run in runs {
            let explains = |&at: &usize| is(&items[at].1, &Kind::Reasoning) && !lone.contains(&at);
            if !run.iter().any(explains) {
                doubtful.extend(run.into_iter().filter(|at| !lone.contains(at)));
            }
        }
    }
    doubtful
}

/// 002's algorithm: results and uses without one another go, and reasoning that led to them.
pub(super) fn remove(transcript: &Transcript, log: &mut Log) -> Vec<Message> {
    let (format, items) = (transcript.format(), transcript.messages());
    let live = format.last_step(items);
    let is_live = |at| {
        at >= live && items[live..].iter().all(|m| matches!(m.role(), Role::Assistant | Role::Tool))
    };
    let elsewhere = Elsewhere::of(transcript);
    let (mut used, mut answered) = (HashMap::new(), HashMap::new());
    for (at, item) in items.iter().enumerate() {
        for id in item.tool_uses() {
            used.entry(id).or_insert(at);
        }
        answered.extend(item.tool_results().map(|id| (id, at)));
    }
    let mut gone = HashSet::new();
    // Results first, from the end on; then uses, as 002 has it.
    for (at, item) in items.iter().enumerate().rev().filter(|_| !elsewhere.uses) {
        let orphan = item.tool_results().find(|id| used.get(id).is_none_or(|&first| first > at));
        let Some(id) = orphan else { continue };
        log.act(ActionKind::RemoveOrphan, at, Some(id));
        log.lose(LossKind::Result, at, id, None);
        log.act(ActionKind::RemoveEmptyMessage, at, None);
        gone.insert(at);
    }
    let mut removed = 0;
    for (at, item) in items.iter().enumerate().filter(|_| !elsewhere.results) {
        if let [Block { kind: Kind::Use { id, name, .. }, .. }] = item.blocks()
            && answered.get(&**id).is_none_or(|&last| last < at)
            && !is_live(at)
        {
            log.act(ActionKind::RemoveIncomplete, at - removed, Some(id));
            log.lose(LossKind::Call, at, id, Some(name));
            gone.insert(at);
        }
        removed += usize::from(gone.contains(&at));
    }
    let kept = items.iter().enumerate().filter(|(at, _)| !gone.contains(at));
    let kept = kept.map(|(at, item)| (Some(at), item.clone())).collect();
    settle_reasoning(format, kept, false, log).into_iter().map(|(_, item)| item).collect()
}

/// Whether an item is of this kind.
pub(super) fn is(item: &Message, kind: &Kind) -> bool {
    item.blocks().iter().any(|block| block.kind == *kind)
}

fn lose_reasoning(was: usize, item: &Message, log: &mut Log) {
    let id = item.item().map_or("", |item| &*item.id);
    log.act(ActionKind::RemoveReasoning, was, Some(id));
    log.lose(LossKind::Reasoning, was, id, None);
}

/// The item without its own id: the provider takes it as new.
fn unlinked(format: Format, item: &Message) -> Message {
    let Some(id) = item.item() else { return item.clone() };
    item.with_raw_of(format.own(json::without_member(item.raw(), &id.at)))
}
