//! Changes the links of entries as the agents do when they load a file.
//!
//! Claude Code's compactions keep messages from before them: as it loads a file, it links those behind the summary, and
//! what followed the summary to the last of them.
//!
//! ```text
//! in the file   … ── a ── b ── c ── d     boundary ── summary ── next
//! as loaded                               boundary ── summary ── c ── d ── next
//! ```
use super::{
    entry::{Link, What},
    located::{Ids, Located},
    preserved::{Preserved, Rows},
};
use crate::name::Name;
use std::collections::HashSet;

/// The entries that are kept, in their order; `None` if one is missing, as then nothing is linked. Where the
/// file has entries before these, some may be there.
fn nodes(kept: &Preserved, entries: &[Located], has_before: bool) -> Option<Vec<usize>> {
    let ids = Ids::of(entries);
    let find = |id: &Name| ids.first(id);
    match &kept.rows {
        Rows::Listed(listed) if has_before => Some(listed.iter().filter_map(find).collect()),
        Rows::Listed(listed) => listed.iter().map(find).collect(),
        Rows::Between(head, tail) => {
            let (head, mut at) = (find(head)?, find(tail)?);
            let (mut nodes, mut seen) = (vec![at], HashSet::from([at]));
            while at != head {
                let Link::To(parent) = &entries[at].entry.link else { return None };
                at = find(parent).filter(|parent| seen.insert(*parent))?;
                nodes.push(at);
            }
            nodes.reverse();
            Some(nodes)
        }
    }
}

/// The last compaction that keeps something, if no other one follows it, the summary behind which that is linked, and
/// what it keeps. Only Claude Code's keep something.
pub(super) fn kept(entries: &[Located], has_before: bool) -> Option<(usize, &Name, Vec<usize>)> {
    let last = entries.iter().rposition(|it| matches!(it.entry.what, What::Reset(_)))?;
    let What::Reset(Some(kept)) = &entries[last].entry.what else { return None };
    let nodes = nodes(kept, entries, has_before)?;
    Some((last, &kept.anchor, nodes))
}

/// Links a file's entries as Claude Code does when it loads them: those before the last compaction go that it does not
/// keep. Done again, it changes nothing; nor does it change files of others, whose compactions keep nothing.
pub(super) fn link(entries: &mut [Located], has_before: bool) {
    let keeps = |it: &Located| matches!(it.entry.what, What::Reset(Some(_)));
    if !entries.iter().any(keeps) {
        return;
    }
    let last = entries.iter().rposition(|it| matches!(it.entry.what, What::Reset(_)));
    let Some(last) = last else { return };
    let (anchor, nodes) = match kept(entries, has_before) {
        Some((_, anchor, nodes)) => (Some(anchor.clone()), nodes),
        // An entry is missing: nothing is linked, and nothing goes.
        None if keeps(&entries[last]) => return,
        None => (None, Vec::new()),
    };
    let tail = nodes.last().and_then(|&node| entries[node].entry.id.clone());
    let is_kept: HashSet<usize> = nodes.iter().copied().collect();
    let mut gone = HashSet::new();
    for (at, located) in entries.iter_mut().enumerate() {
        let entry = &mut located.entry;
        if at < last && !is_kept.contains(&at) && !entry.is_outside() {
            gone.extend(entry.id.take());
            (entry.what, entry.link) = (What::Outside, Link::Before);
        }
        if matches!(entry.what, What::Leaf { is_explicit: false, .. }) {
            entry.what = What::Outside;
        }
    }
    let behind = tail.clone().map_or(Link::Root, Link::To);
    for (at, located) in entries.iter_mut().enumerate() {
        let Link::To(parent) = &located.entry.link else { continue };
        let is_next = Some(parent) == anchor.as_ref() && tail.is_some();
        if !is_kept.contains(&at) && (is_next || gone.contains(parent)) {
            located.entry.link = behind.clone();
        }
    }
    let mut before = anchor;
    for &node in &nodes {
        let entry = &mut entries[node].entry;
        if let Some(before) = before {
            entry.link = Link::To(before);
        }
        before = entry.id.clone();
    }
}

/// Takes back the last `turns` of these entries, as a rollback of Codex's does; `false` if they have
/// fewer, and older ones are not among them.
pub(super) fn undo(entries: &mut [Located], turns: u64, has_before: bool) -> bool {
    let begins = |it: &Located| it.entry.link == Link::Root && !it.entry.is_outside();
    let Some(back) = turns.checked_sub(1) else { return true };
    let back = usize::try_from(back).unwrap_or(usize::MAX);
    let starts = entries.iter().enumerate().rev().filter(|(_, it)| begins(it));
    let from = match starts.map(|(at, _)| at).nth(back) {
        Some(from) => from,
        None if has_before => return false,
        None => entries.iter().position(begins).unwrap_or(entries.len()),
    };
    for located in &mut entries[from..] {
        (located.entry.what, located.entry.link) = (What::Outside, Link::Before);
    }
    true
}
