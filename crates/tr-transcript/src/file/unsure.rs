//! Lines whose place in the session is not certain, because others are lost or repeated.
use super::{
    entry::{Entry, Link, What},
    located::{Ids, Located},
};
use crate::{message::Message, name::Name};
use std::{
    collections::{HashMap, HashSet},
    mem,
};

/// For each entry, whether more than one branch of `entries` is open before it, so that it is not
/// certain which of them an entry continues whose parent is lost.
pub(super) fn forks(entries: &[Located], ids: &Ids<'_>) -> Vec<bool> {
    // The first entry of each node: an answer with its results, or an entry with the hidden ones
    // behind it.
    let mut nodes: Vec<usize> = Vec::with_capacity(entries.len());
    let mut is_continued = vec![false; entries.len()];
    let mut answers: HashMap<&str, usize> = HashMap::new();
    let (mut open, mut last) = (0_usize, None);
    let mut forks = Vec::with_capacity(entries.len());
    for (at, Located { entry, .. }) in entries.iter().enumerate() {
        forks.push(open > 1);
        nodes.push(at);
        if entry.is_outside() {
            continue;
        }
        let before = last.replace(at);
        let parent = match &entry.link {
            Link::To(id) => ids.parent(id, at).filter(|&parent| parent < at).or(before),
            Link::Root if !matches!(entry.what, What::Reset | What::Rewritten) => None,
            Link::Root | Link::Before => before,
        };
        let parent = parent.map(|parent| nodes[parent]);
        let is_results = entry.as_message().is_some_and(Message::has_only_results);
        let is_part = is_results || matches!(entry.what, What::Hidden);
        let whole = match entry.answer() {
            Some(answer) => answers.get(answer).copied(),
            None => parent.filter(|_| is_part),
        };
        if let Some(whole) = whole {
            nodes[at] = whole;
        } else {
            open += 1;
            if parent.is_some_and(|parent| !mem::replace(&mut is_continued[parent], true)) {
                open -= 1;
            }
            answers.extend(entry.answer().map(|answer| (answer, at)));
        }
    }
    forks
}

/// The entries of a file of Claude Code's that belong to the branch, it is not certain where or how:
/// a result that is not sent, since the line of its call is lost; and a line of an answer with the id
/// of another, which says something else.
pub(super) fn beside(entries: &[Located], nodes: &[usize]) -> Vec<usize> {
    let mut is_on_path = vec![false; entries.len()];
    nodes.iter().for_each(|&node| is_on_path[node] = true);
    let Some(first) = nodes.iter().copied().min() else { return Vec::new() };
    let message = |at: usize| entries[at].entry.as_message();
    let others: Vec<usize> =
        (first..entries.len()).filter(|&at| !is_on_path[at] && message(at).is_some()).collect();
    if others.is_empty() {
        return Vec::new();
    }
    let answers: HashSet<&str> =
        nodes.iter().filter_map(|&node| entries[node].entry.answer()).collect();
    let ids = Ids::of(entries);
    let uses = (0..entries.len()).filter_map(message).flat_map(Message::tool_uses);
    let uses: HashSet<&str> = uses.collect();
    let results = nodes.iter().filter_map(|&node| message(node));
    let results: HashSet<&str> = results.flat_map(Message::tool_results).collect();
    let is_lost = |at: usize| {
        let Link::To(parent) = &entries[at].entry.link else { return false };
        let mut found = message(at).into_iter().flat_map(Message::tool_results).peekable();
        found.peek().is_some()
            && found.all(|id| !uses.contains(id) && !results.contains(id))
            && ids.parent(parent, at).is_none()
    };
    let mut lines: HashMap<&Name, usize> = HashMap::new();
    for &node in nodes {
        if let (Some(_), Some(id)) = (entries[node].entry.answer(), &entries[node].entry.id) {
            lines.insert(id, node);
        }
    }
    let mut is_unlike = |at: usize| {
        let entry = &entries[at].entry;
        let Some(id) = entry
            .id
            .as_ref()
            .filter(|_| entry.answer().is_some_and(|answer| answers.contains(answer)))
        else {
            return false;
        };
        !says_same(&entries[*lines.entry(id).or_insert(at)].entry, entry)
    };
    others.into_iter().filter(|&at| is_lost(at) || is_unlike(at)).collect()
}

fn says_same(one: &Entry, other: &Entry) -> bool {
    let said = |entry: &Entry| {
        let blocks = entry.as_message().map(Message::blocks).unwrap_or_default();
        blocks.iter().map(|block| mem::discriminant(&block.kind)).collect::<Vec<_>>()
    };
    let uses = |entry: &Entry| {
        let uses = entry.as_message().into_iter().flat_map(Message::tool_uses);
        uses.map(str::to_owned).collect::<Vec<_>>()
    };
    one.answer() == other.answer() && said(one) == said(other) && uses(one) == uses(other)
}
