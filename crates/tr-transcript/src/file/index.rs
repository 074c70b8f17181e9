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
    name::Name as Id,
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
    /// The last of them that has a place in the session.
    last: Option<usize>,
    /// Every name in the file with the record it stands in, sorted.
    names: Vec<(Key, u32)>,
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
    /// The entry directly before it, if it is linked to that.
    follows: Option<usize>,
    is: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Outside,
    Hidden,
    Unread,
    /// The model sees nothing before it, but for what it keeps.
    Hides,
    Message {
        role: Role,
        has_results: bool,
    },
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
        let name = |id: &Id| self.key(&Name::Entry(&**id));
        let (mut link, mut kept) = (entry.link.map(name), None);
        let is = match &entry.what {
            What::Header { .. } | What::Outside => Kind::Outside,
            What::Leaf { id, .. } => {
                link = Link::To(name(id));
                Kind::Outside
            }
            // What it is about may stand in another part.
            What::Edited { .. } | What::Reset(Some(_)) | What::Compaction(FirstKept::Number(_)) => {
                return None;
            }
            What::Hidden => Kind::Hidden,
            What::Empty(_) | What::Unread => Kind::Unread,
            What::Reset(None) | What::Rewritten | What::Undone(_) => Kind::Hides,
            What::Compaction(first) => {
                kept = if let FirstKept::Id(id) = first { Some(name(id)) } else { None };
                Kind::Hides
            }
            What::Message { message, .. } => {
                let has_results = message.tool_results().next().is_some();
                Kind::Message { role: message.role(), has_results }
            }
        };
        let id = entry.id.as_ref().map(name);
        if let What::Message { message, group } = &entry.what {
            self.note(message, group.as_deref(), at);
            self.images += message.body.images;
            self.has_wide_image |= message.wide_images().next().is_some();
        }
        let follows = self.last.filter(|&before| match link {
            Link::Root => false,
            Link::Before => true,
            Link::To(key) => self.nodes[before].id == Some(key),
        });
        // The link to the entry before it may cross a cut.
        let link_key = if let (Link::To(key), None) = (link, follows) { Some(key) } else { None };
        self.names.extend(id.into_iter().chain(kept).chain(link_key).map(|key| (key, at)));
        self.last = Some(at as usize).filter(|_| is != Kind::Outside).or(self.last);
        self.nodes.push(Node { offset, line, id, link, follows, is });
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

    /// The first entry with this id.
    fn entry(&self, key: Key) -> Option<usize> {
        let mut places = self.places(key).iter().map(|&(_, at)| at as usize);
        places.find(|&at| self.nodes[at].id == Some(key))
    }

    /// Where the last answer of the active branch begins, in a form that several providers use.
    pub(super) fn last_answer(&self, form: FileForm) -> Option<usize> {
        if !matches!(form, FileForm::OpenClaw { .. }) {
            return None;
        }
        let mut next = None;
        for node in self.nodes.iter().rev().filter(|node| node.is != Kind::Outside) {
            if next.is_some() && node.id != next {
                continue;
            }
            if let Kind::Message { role: Role::Assistant, .. } = node.is {
                return Some(node.offset as usize);
            }
            next = match node.link {
                Link::Root => return None,
                Link::Before => None,
                Link::To(key) => Some(key).filter(|&key| self.entry(key).is_some()),
            };
        }
        None
    }

    /// The cuts, in the order of the file.
    pub(super) fn cuts(&self, bytes: &[u8]) -> Vec<Cut> {
        let hides = self.nodes.iter().rposition(|node| node.is == Kind::Hides);
        // It may stand on another branch.
        let is_passed = |node: &Node| match node.link {
            Link::To(key) => node.follows.is_none() && self.entry(key) < hides,
            Link::Root | Link::Before => false,
        };
        if hides.is_some_and(|hides| self.nodes[hides + 1..].iter().any(is_passed)) {
            return Vec::new();
        }
        let crossed = self.crossed();
        let mut before: Option<Role> = None;
        let mut cuts = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, it)| it.is != Kind::Outside) {
            before = before.filter(|_| node.follows.is_some());
            let Kind::Message { role, has_results } = node.is else {
                before = before.filter(|_| node.is == Kind::Hidden);
                continue;
            };
            let begins = match before.replace(role) {
                Some(Role::Assistant) => role == Role::User && !has_results,
                Some(Role::User | Role::Tool) => role == Role::Assistant,
                _ => false,
            };
            let parent = node.follows.filter(|_| begins && !crossed[at]);
            let Some(parent) = parent else { continue };
            let start = node.offset as usize;
            let offset = memchr::memrchr(b'\n', &bytes[..start]).map_or(0, |end| end + 1);
            if !bytes[offset..start].iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let parent = self.nodes[parent].offset as usize;
            let (line, is_hidden) = (node.line, Some(at) <= hides);
            cuts.push(Cut { offset, line, parent, role, is_hidden });
        }
        cuts
    }

    /// For each record, whether a cut before it would separate two records that belong together.
    fn crossed(&self) -> Vec<bool> {
        let mut change = vec![0_i32; self.nodes.len() + 1];
        let mut cross = |from: usize, to: usize| {
            change[from] += 1;
            change[to] -= 1;
        };
        // What stands before the beginning of another branch is not sent.
        let root =
            self.nodes.iter().rposition(|it| it.link == Link::Root && it.is != Kind::Outside);
        cross(0, root.map_or(0, |root| root + 1));
        for same in self.names.chunk_by(|(one, _), (other, _)| one == other) {
            if let [(_, first), .., (_, last)] = same {
                cross(*first as usize + 1, *last as usize + 1);
            }
        }
        let mut over = 0;
        let crossed = change.iter().take(self.nodes.len()).map(|change| {
            over += change;
            over > 0
        });
        crossed.collect()
    }
}
