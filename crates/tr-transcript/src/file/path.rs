//! The active branch of a session file after its last compaction: the entries that the model sees, and
//! those whose place is not certain, because others are lost or repeated.
use super::{
    entry::{Entry, FirstKept, Link, What},
    finding::FileFault,
    form::FileForm,
    located::{Ids, Located},
};
use crate::{message::Message, name::Name};
use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    mem,
};

/// The active branch, as indexes into a list of entries.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// The entries that the model sees, from first to last.
    pub(super) nodes: Vec<usize>,
    /// The whole branch, from its root on.
    pub(super) branch: Vec<usize>,
    /// Those of the nodes whose parent is missing, or is one of their descendants.
    pub(super) phantoms: Vec<(usize, FileFault)>,
    /// Entries whose place on the branch is not certain.
    pub(super) unsure: Vec<usize>,
    /// Those of the nodes whose messages cannot be read.
    pub(super) unread: Vec<usize>,
    /// Whether the first node continues entries before the list.
    pub(super) continues: bool,
    /// The compaction that the model sees as a summary; it is not among the nodes.
    pub(super) summary: Option<usize>,
    /// The record that names the last entry.
    pub(super) pointer: Option<usize>,
    /// Whether entries before the list are hidden although the branch continues them.
    pub(super) forgets: bool,
    /// An entry that changes what the model sees of earlier ones, in a way that is not known.
    pub(super) rewritten: Option<usize>,
}

impl Path {
    /// The active branch of `entries`: from the last leaf to its root. `has_before` says that the
    /// file has entries before them.
    pub(super) fn active(
        form: FileForm,
        entries: &[Located],
        has_before: bool,
        linked: bool,
    ) -> Self {
        let mut path = if linked {
            Self::linked(form, entries, has_before)
        } else {
            let nodes = (0..entries.len()).filter(|&at| !entries[at].entry.is_outside());
            Self { nodes: nodes.collect(), continues: true, ..Self::default() }
        };
        path.branch.clone_from(&path.nodes);
        path.forget(entries, has_before);
        let is_unread = |node: &usize| matches!(entries[*node].entry.what, What::Unread);
        let unread = path.nodes.iter().copied().filter(is_unread);
        path.unread = path.rewritten.into_iter().chain(unread).collect();
        path.edit(entries);
        if !path.unsure.is_empty() {
            let nodes: HashSet<usize> = path.nodes.iter().copied().collect();
            path.unsure.retain(|node| nodes.contains(node));
        }
        if form.is_claude_code() {
            // Claude Code writes in each line which one it follows, also that it follows none.
            let first = path.nodes.iter().copied().min().unwrap_or(entries.len());
            let is_free = |node: &usize| {
                let entry = &entries[*node].entry;
                entry.link == Link::Before && !entry.is_outside()
            };
            path.unsure.extend((first..entries.len()).filter(is_free));
            if !has_before {
                path.unsure.extend(beside(entries, &path.nodes));
            }
        }
        path
    }

    fn linked(form: FileForm, entries: &[Located], has_before: bool) -> Self {
        let ids = OnceCell::new();
        let ids = || ids.get_or_init(|| Ids::of(entries));
        let known = OnceCell::new();
        let is_forked = || known.get_or_init(|| forks(entries, ids()));
        let mut path = Self::default();
        let mut is_visited = vec![false; entries.len()];
        let mut next;
        (next, path.pointer) = Self::leaf(form, entries, ids);
        while let Some(at) = next {
            is_visited[at] = true;
            path.nodes.push(at);
            let before = || (0..at).rev().find(|&before| !entries[before].entry.is_outside());
            let parent = match &entries[at].entry.link {
                Link::Root => break,
                Link::Before => before(),
                // Most entries follow the one directly before them; that one is the nearest with
                // its id.
                Link::To(id) => match at.checked_sub(1) {
                    Some(next) if entries[next].entry.id.as_ref() == Some(id) => Some(next),
                    // No entry of the list is before the first one: the parent is before the list,
                    // or a later entry.
                    None => entries.iter().position(|it| it.entry.id.as_ref() == Some(id)),
                    _ => ids().parent(id, at),
                },
            };
            let is_new = |parent: &usize| !is_visited[*parent];
            next = match parent.filter(is_new) {
                Some(parent) => Some(parent),
                // The parent may be before the list.
                None if has_before => None,
                None => {
                    let before = before();
                    let fault = match parent {
                        None => FileFault::PhantomParent,
                        Some(_) => FileFault::ParentCycle,
                    };
                    path.phantoms.extend(before.map(|_| (at, fault)));
                    if before.is_some() && is_forked().get(at) == Some(&true) {
                        path.unsure.push(at);
                    }
                    before.filter(is_new)
                }
            };
            path.continues = next.is_none();
        }
        path.nodes.reverse();
        path
    }

    /// The last entry of the active branch, and the record that names it, unless an entry was
    /// written after that record.
    fn leaf<'e>(
        form: FileForm,
        entries: &[Located],
        ids: impl Fn() -> &'e Ids<'e>,
    ) -> (Option<usize>, Option<usize>) {
        let mut newest = entries.iter().enumerate().rev();
        for (at, located) in &mut newest {
            if located.entry.is_leaf(form) {
                return (Some(at), None);
            }
            if let What::Leaf { id, .. } = &located.entry.what
                && let Some(leaf) = ids().parent(id, at)
            {
                return (Some(leaf), Some(at));
            }
        }
        (None, None)
    }

    /// Removes the entries that an edit omits. What the model sees of a step that an edit replaces is not known.
    fn edit(&mut self, entries: &[Located]) {
        let edits = self.nodes.iter().filter_map(|&node| match &entries[node].entry.what {
            What::Edited { target, omits } => Some((target, *omits)),
            _ => None,
        });
        // The last one of an entry holds.
        let edits: HashMap<&Name, bool> = edits.collect();
        if edits.is_empty() {
            return;
        }
        let edit = |node: usize| edits.get(entries[node].entry.id.as_ref()?).copied();
        self.nodes.retain(|&node| edit(node) != Some(true));
        self.summary = self.summary.filter(|&node| edit(node) != Some(true));
        let uses = |node: usize| {
            let message = entries[node].entry.as_message();
            message.is_some_and(|message| message.tool_uses().next().is_some())
        };
        let replaced = |node: &usize| edit(*node) == Some(false) && uses(*node);
        self.unread.extend(self.nodes.iter().copied().filter(replaced));
    }

    /// Removes the entries that a compaction or a reset hides.
    fn forget(&mut self, entries: &[Located], has_before: bool) {
        let what = |node: &usize| &entries[*node].entry.what;
        let hides_all =
            |node: &usize| matches!(what(node), What::Reset(_) | What::Rewritten | What::Undone(_));
        let reset = self.nodes.iter().rposition(hides_all);
        let last = reset.map(|reset| self.nodes[reset]);
        self.rewritten =
            last.filter(|node| matches!(what(node), What::Rewritten | What::Undone(_)));
        let compaction =
            self.nodes.iter().rposition(|node| matches!(what(node), What::Compaction(_)));
        let mut from = reset.map_or(0, |reset| reset + 1);
        let mut hides = reset.is_some();
        if let Some(at) = compaction.filter(|&at| at >= from)
            && let What::Compaction(first_kept) = what(&self.nodes[at])
        {
            let node = self.nodes.remove(at);
            self.summary = Some(node);
            let kept = self.nodes[from..at].iter().position(|&node| first_kept.is(&entries[node]));
            let may_be_before = has_before && !hides && self.continues;
            // The first kept entry is before the list.
            self.forgets =
                kept.is_none() && may_be_before && !matches!(first_kept, FirstKept::Nothing);
            if !self.forgets {
                from = kept.map_or(at, |kept| from + kept);
                hides = true;
            }
        }
        self.nodes.drain(..from);
        self.continues &= !hides;
    }
}

impl FirstKept {
    fn is(&self, located: &Located) -> bool {
        match self {
            Self::Id(id) => located.entry.id.as_ref() == Some(id),
            Self::Number(number) => located.place.number == *number,
            Self::Nothing => false,
        }
    }
}

/// Whether any entry names a parent that exists. If none does, a file of linked entries was
/// assembled by hand, and its entries follow one another. With two entries of which only the second
/// names a parent, that parent counts as missing.
pub(super) fn is_linked(entries: &[Located]) -> bool {
    let entries = entries.iter().map(|located| &located.entry);
    let named = entries.clone().filter(|entry| entry.id.is_some());
    let ids: HashSet<&str> = named.clone().filter_map(|entry| entry.id.as_deref()).collect();
    let mut links = entries.filter_map(|entry| match &entry.link {
        Link::To(id) => Some(&**id),
        _ => None,
    });
    let mut two = named.map(|entry| &entry.link);
    let is_gap =
        matches!((two.next(), two.next(), two.next()), (Some(Link::Root), Some(Link::To(_)), None));
    is_gap || links.any(|id| ids.contains(id))
}

/// For each entry, whether more than one branch of `entries` is open before it, so that it is not
/// certain which of them an entry continues whose parent is lost.
fn forks(entries: &[Located], ids: &Ids<'_>) -> Vec<bool> {
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
            Link::Root if !matches!(entry.what, What::Reset(_) | What::Rewritten) => None,
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
fn beside(entries: &[Located], nodes: &[usize]) -> Vec<usize> {
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
        let is_of_path = entry.answer().is_some_and(|answer| answers.contains(answer));
        let Some(id) = entry.id.as_ref().filter(|_| is_of_path) else { return false };
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
