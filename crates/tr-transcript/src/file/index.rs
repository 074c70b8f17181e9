//! An index of a whole file that finds where it can be cut, so that only damaged parts are
//! repaired.
//!
//! About a hundred bytes for each record. A cut stands before a record of the active branch, and
//! only the branch's own link crosses it: no other link, no pair of tool ids, no message of several
//! lines.
use super::{
    entry::{Entry, FirstKept, Link, What},
    form::FileForm,
    outline,
    records::{Piece, Record, Records},
};
use crate::{
    format::MANY_IMAGES,
    message::{Message, Role},
};
use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    num::NonZeroU64,
};

/// The links and ids of a file's records.
#[derive(Default)]
pub(super) struct Index {
    /// Randomly keyed, because the ids come from outside.
    hasher: RandomState,
    nodes: Vec<Node>,
    /// Every name in the file with the record it stands in, sorted.
    names: Vec<(Key, u32)>,
    /// The first entry that each compaction keeps.
    compactions: Vec<(u32, Option<Key>)>,
    /// Records that name the last entry of the branch.
    leaves: Vec<(u32, Key)>,
    images: usize,
    has_wide_image: bool,
}

/// The hash of a name. A collision only means fewer cuts.
pub(super) type Key = NonZeroU64;

/// What a name identifies: an entry, a tool use, or the lines of one message.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Name<T> {
    Entry(T),
    Tool(T),
    Group(T),
}

#[derive(Clone, Copy)]
struct Node {
    offset: u64,
    line: u64,
    id: Option<Key>,
    link: Link<Key>,
    is: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Outside,
    Hidden,
    Unread,
    Reset,
    Compaction,
    Message { role: Role, has_results: bool },
}

/// A place where a file can be cut: before the record at `offset`, which begins a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) offset: usize,
    pub(super) line: u64,
    /// Where its parent on the branch begins.
    pub(super) parent: usize,
    /// Who speaks in it: the user, or the model.
    pub(super) role: Role,
    /// Whether a later compaction or reset hides what stands before it.
    pub(super) is_hidden: bool,
}

impl Index {
    /// Indexes a file of this form; `None` where entries refer to each other by number, or where images are
    /// refused because of the others.
    pub(super) fn read(
        form: FileForm,
        bytes: &[u8],
        mut progress: impl FnMut(u64),
    ) -> Option<Self> {
        let mut index = Self::default();
        let mut records = Records::new(bytes).max_record(usize::MAX);
        records.trust();
        // Reading a slice cannot fail.
        while let Ok(Some(piece)) = records.next() {
            let Piece::Record(record) = piece else { continue };
            let Record { offset, is_glued, .. } = record;
            let Some(outline) = outline::read(form, &record.text, usize::MAX) else {
                records.distrust(offset, is_glued);
                continue;
            };
            index.push(&outline.entry, offset, record.line)?;
            progress(records.position());
        }
        index.names.sort_unstable();
        index.names.dedup();
        (index.images <= MANY_IMAGES || !index.has_wide_image).then_some(index)
    }

    /// Whether the file contains this name.
    pub(super) fn has(&self, name: &Name<impl Hash>) -> bool {
        !self.places(self.key(name)).is_empty()
    }

    fn push(&mut self, entry: &Entry, offset: u64, line: u64) -> Option<()> {
        let at = u32::try_from(self.nodes.len()).ok()?;
        let is = match &entry.what {
            What::Header { .. } | What::Outside => Kind::Outside,
            What::Leaf { id, .. } => {
                self.leaves.push((at, self.key(&Name::Entry(&**id))));
                Kind::Outside
            }
            // What it is about may stand in another part.
            What::Edited { .. } => return None,
            What::Hidden => Kind::Hidden,
            What::Empty(_) | What::Unread => Kind::Unread,
            What::Reset(Some(_)) => return None,
            What::Reset(None) | What::Rewritten | What::Undone(_) => Kind::Reset,
            What::Compaction(kept) => {
                let kept = match kept {
                    FirstKept::Id(id) => Some(self.key(&Name::Entry(&**id))),
                    FirstKept::Number(_) => return None,
                    FirstKept::Nothing => None,
                };
                self.compactions.push((at, kept));
                Kind::Compaction
            }
            What::Message { message, group } => {
                self.note(message, group.as_deref(), at);
                self.images += message.body.images;
                self.has_wide_image |= message.wide_images().next().is_some();
                let has_results = message.tool_results().next().is_some();
                Kind::Message { role: message.role(), has_results }
            }
        };
        let id = entry.id.as_deref().map(|id| self.key(&Name::Entry(id)));
        self.names.extend(id.map(|id| (id, at)));
        let link = entry.link.map(|id| self.key(&Name::Entry(&**id)));
        self.nodes.push(Node { offset, line, id, link, is });
        Some(())
    }

    fn note(&mut self, message: &Message, group: Option<&str>, at: u32) {
        let tools = message.tool_uses().chain(message.tool_results()).map(Name::Tool);
        let names = tools.chain(group.map(Name::Group)).map(|name| (self.key(&name), at));
        let names: Vec<_> = names.collect();
        self.names.extend(names);
    }

    fn key(&self, name: &Name<impl Hash>) -> Key {
        NonZeroU64::new(self.hasher.hash_one(name)).unwrap_or(NonZeroU64::MIN)
    }

    fn places(&self, key: Key) -> &[(Key, u32)] {
        let from = self.names.partition_point(|(name, _)| *name < key);
        let to = self.names.partition_point(|(name, _)| *name <= key);
        &self.names[from..to]
    }

    /// The nearest entry with this id before `child`, else the first one after it.
    fn parent(&self, key: Key, child: usize) -> Option<usize> {
        // Most entries follow the one directly before them; that one is the nearest.
        let before = child.checked_sub(1).filter(|&before| self.nodes[before].id == Some(key));
        if before.is_some() {
            return before;
        }
        let places = self.places(key);
        let behind = places.partition_point(|&(_, at)| (at as usize) < child);
        let nearest = behind.checked_sub(1).unwrap_or(behind);
        places.get(nearest).map(|&(_, at)| at as usize)
    }

    fn is_linked(&self) -> bool {
        let mut links = self.nodes.iter().filter_map(|node| match node.link {
            Link::To(key) => Some(key),
            _ => None,
        });
        links.any(|key| !self.places(key).is_empty())
    }

    fn entry_before(&self, at: usize) -> Option<usize> {
        (0..at).rev().find(|&before| self.nodes[before].is != Kind::Outside)
    }

    /// The active branch from its first entry on, each entry with its parent.
    fn branch(&self, form: FileForm) -> Vec<(usize, Option<usize>)> {
        let mut branch = Vec::new();
        if !self.is_linked() {
            let mut before = None;
            for at in (0..self.nodes.len()).filter(|&at| self.nodes[at].is != Kind::Outside) {
                branch.push((at, before.replace(at)));
            }
            return branch;
        }
        let is_leaf = |node: &Node| match form {
            FileForm::ClaudeCode => {
                matches!(node.is, Kind::Message { .. } | Kind::Unread)
            }
            _ => node.is != Kind::Outside,
        };
        let mut visited = vec![false; self.nodes.len()];
        let newest = self.nodes.iter().rposition(is_leaf);
        let mut next = self.pointed(newest).map(|(leaf, _)| leaf).or(newest);
        while let Some(at) = next {
            visited[at] = true;
            let parent = match self.nodes[at].link {
                Link::Root => None,
                Link::Before => self.entry_before(at),
                Link::To(key) => self
                    .parent(key, at)
                    .filter(|&parent| !visited[parent])
                    .or_else(|| self.entry_before(at)),
            };
            next = parent.filter(|&parent| !visited[parent]);
            branch.push((at, next));
        }
        branch.reverse();
        branch
    }

    /// Where the last answer of the active branch begins, in a form that several providers use.
    pub(super) fn last_answer(&self, form: FileForm) -> Option<usize> {
        let is_asked = matches!(form, FileForm::OpenClaw { .. });
        let branch = if is_asked { self.branch(form) } else { Vec::new() };
        let is_answer =
            |node: &Node| matches!(node.is, Kind::Message { role: Role::Assistant, .. });
        let mut nodes = branch.iter().rev().map(|&(at, _)| &self.nodes[at]);
        nodes.find(|node| is_answer(node)).map(|node| node.offset as usize)
    }

    /// The entry that a record names as the last, and that record, unless a newer entry exists.
    fn pointed(&self, newest: Option<usize>) -> Option<(usize, usize)> {
        let leaves = self.leaves.iter().rev().map(|&(at, key)| (at as usize, key));
        let mut newer = leaves.take_while(|&(at, _)| newest.is_none_or(|newest| newest < at));
        newer.find_map(|(at, key)| Some((self.parent(key, at)?, at)))
    }

    /// The cuts, in the order of the file.
    pub(super) fn cuts(&self, form: FileForm, bytes: &[u8]) -> Vec<Cut> {
        let branch = self.branch(form);
        let crossed = self.crossed(&branch);
        let visible = self.visible(&branch);
        let mut before: Option<Role> = None;
        let mut cuts = Vec::new();
        for &(at, parent) in &branch {
            let node = &self.nodes[at];
            let Kind::Message { role, has_results } = node.is else {
                before = before.filter(|_| node.is == Kind::Hidden);
                continue;
            };
            let begins = match before.replace(role) {
                Some(Role::Assistant) => role == Role::User && !has_results,
                Some(Role::User | Role::Tool) => role == Role::Assistant,
                _ => false,
            };
            let is_cut = begins && !crossed[at];
            let Some(parent) = parent.filter(|&parent| is_cut && parent < at) else { continue };
            let start = node.offset as usize;
            let offset = memchr::memrchr(b'\n', &bytes[..start]).map_or(0, |end| end + 1);
            if !bytes[offset..start].iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let parent = self.nodes[parent].offset as usize;
            let (line, is_hidden) = (node.line, at <= visible);
            cuts.push(Cut { offset, line, parent, role, is_hidden });
        }
        cuts
    }

    /// For each record, whether a cut before it would separate two records that belong together.
    fn crossed(&self, branch: &[(usize, Option<usize>)]) -> Vec<bool> {
        let mut change = vec![0_i32; self.nodes.len() + 2];
        let mut cross = |one: usize, other: usize| {
            let (from, to) = (one.min(other), one.max(other));
            change[from + 1] += 1;
            change[to + 1] -= 1;
        };
        let mut is_on_branch = vec![false; self.nodes.len()];
        for &(at, parent) in branch {
            is_on_branch[at] = true;
            match parent {
                // The branch's own link may cross the cut before its entry.
                Some(parent) if parent < at => cross(parent, at - 1),
                Some(parent) => cross(at, parent),
                None => {}
            }
        }
        for (at, node) in self.nodes.iter().enumerate() {
            if let (false, Link::To(key)) = (is_on_branch[at], node.link)
                && let Some(parent) = self.parent(key, at)
            {
                cross(at, parent);
            }
        }
        for &(at, kept) in &self.compactions {
            if let Some(first) = kept.and_then(|kept| self.parent(kept, at as usize)) {
                cross(first, at as usize);
            }
        }
        if let Some((leaf, at)) = self.pointed(None) {
            cross(leaf, at);
        }
        for same in self.names.chunk_by(|(one, _), (other, _)| one == other) {
            if let [(_, first), .., (_, last)] = same {
                cross(*first as usize, *last as usize);
            }
        }
        let mut over = 0;
        let crossed = change.iter().take(self.nodes.len()).map(|change| {
            over += change;
            over > 0
        });
        crossed.collect()
    }

    /// The first record that the model sees, without those that a compaction keeps.
    fn visible(&self, branch: &[(usize, Option<usize>)]) -> usize {
        let hides = |(at, _): &&(usize, Option<usize>)| {
            matches!(self.nodes[*at].is, Kind::Reset | Kind::Compaction)
        };
        let Some(&(last, _)) = branch.iter().rfind(hides) else { return 0 };
        let kept = self.compactions.iter().find(|&&(at, _)| at as usize == last);
        let first = kept.and_then(|&(_, kept)| self.parent(kept?, last));
        first.unwrap_or(last)
    }
}
