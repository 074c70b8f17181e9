//! An index of a whole file that finds where it can be cut, so that only damaged parts are
//! repaired.
//!
//! A few hundred bytes for each record. A cut stands before a record of the active branch, and
//! only the branch's own link crosses it: no other link, no pair of tool ids, no message of several
//! lines.
use super::{
    entry::{Entry, FirstKept, Link, What},
    form::FileForm,
    located::{Ids, Located},
    outline,
    path::{self, Path},
    records::{Piece, Record, Records},
};
use crate::message::{Body, Message, Role};
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hash, RandomState},
};

/// The links and ids of a file's records.
pub(super) struct Index {
    /// Randomly keyed, because the ids come from outside.
    hasher: RandomState,
    /// The records, whose messages only tell who speaks; one with results is a tool's.
    entries: Vec<Located>,
    /// The message of each speaker.
    said: HashMap<Role, Message>,
    /// Every name in the file with the record it stands in, sorted. A collision of their hashes
    /// only means fewer cuts.
    names: Vec<(u64, u32)>,
    path: Path,
}

/// What a name identifies: an entry, a tool use, or the lines of one message.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Name<T> {
    Entry(T),
    Tool(T),
    Group(T),
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
    /// Indexes a file of this form; `None` where entries refer to each other by number.
    pub(super) fn read(
        form: FileForm,
        bytes: &[u8],
        mut progress: impl FnMut(u64),
    ) -> Option<Self> {
        let mut index = Self {
            hasher: RandomState::new(),
            entries: Vec::new(),
            said: HashMap::new(),
            names: Vec::new(),
            path: Path::default(),
        };
        let mut records = Records::new(bytes).max_record(usize::MAX);
        records.trust();
        // Reading a slice cannot fail.
        while let Ok(Some(piece)) = records.next() {
            let Piece::Record(record) = piece else { continue };
            let Record { offset, length, line, is_glued, .. } = record;
            let Some(entry) = outline::read(form, &record.text) else {
                records.distrust(offset, length, is_glued);
                continue;
            };
            index.push(entry, offset, line)?;
            progress(records.position());
        }
        index.names.sort_unstable();
        index.names.dedup();
        let is_linked = path::is_linked(index.entries.iter().map(|located| &located.entry));
        index.path = Path::active(form, &index.entries, false, is_linked);
        Some(index)
    }

    /// Whether the file contains this name.
    pub(super) fn has(&self, name: &Name<impl Hash>) -> bool {
        let key = self.hasher.hash_one(name);
        self.names.binary_search_by_key(&key, |(name, _)| *name).is_ok()
    }

    fn push(&mut self, mut entry: Entry, offset: u64, line: u64) -> Option<()> {
        let at = u32::try_from(self.entries.len()).ok()?;
        let Self { hasher, names, said, .. } = self;
        let mut note = |name: Name<&str>| names.push((hasher.hash_one(name), at));
        entry.id.as_deref().map(Name::Entry).into_iter().for_each(&mut note);
        match &mut entry.what {
            What::Compaction(FirstKept::Number(_)) => return None,
            What::Message { message, group } => {
                let tools = message.tool_uses().chain(message.tool_results()).map(Name::Tool);
                tools.chain(group.as_deref().map(Name::Group)).for_each(note);
                let has_results = message.tool_results().next().is_some();
                let role = if has_results { Role::Tool } else { message.role() };
                let new = || Message::new(Body { role, ..Body::of(Box::default()) });
                *message = said.entry(role).or_insert_with(new).clone();
                *group = None;
            }
            _ => {}
        }
        self.entries.push(Located { entry, number: at.into(), line, offset, follows: false });
        Some(())
    }

    fn role(&self, at: usize) -> Option<Role> {
        self.entries[at].entry.as_message().map(Message::role)
    }

    /// Where the last answer of the active branch begins, in a form that several providers use.
    pub(super) fn last_answer(&self, form: FileForm) -> Option<usize> {
        let is_asked = matches!(form, FileForm::OpenClaw { .. });
        let mut branch = self.path.branch.iter().rev().filter(|_| is_asked);
        let last = branch.find(|&&at| self.role(at) == Some(Role::Assistant))?;
        Some(self.entries[*last].offset as usize)
    }

    /// The branch, each entry with its parent.
    fn branch(&self) -> impl Iterator<Item = (usize, Option<usize>)> {
        let mut before = None;
        self.path.branch.iter().map(move |&at| (at, before.replace(at)))
    }

    /// The cuts, in the order of the file.
    pub(super) fn cuts(&self, bytes: &[u8]) -> Vec<Cut> {
        let ids = Ids::of(&self.entries);
        let (crossed, visible) = (self.crossed(&ids), self.visible(&ids));
        let mut before: Option<Role> = None;
        let mut cuts = Vec::new();
        for (at, parent) in self.branch() {
            let Located { entry, offset, line, .. } = &self.entries[at];
            let Some(role) = self.role(at) else {
                before = before.filter(|_| matches!(entry.what, What::Hidden));
                continue;
            };
            let begins = match before.replace(role) {
                Some(Role::Assistant) => role == Role::User,
                Some(Role::User | Role::Tool) => role == Role::Assistant,
                _ => false,
            };
            let is_cut = begins && !crossed[at];
            let Some(parent) = parent.filter(|&parent| is_cut && parent < at) else { continue };
            let start = *offset as usize;
            let offset = memchr::memrchr(b'\n', &bytes[..start]).map_or(0, |end| end + 1);
            if !bytes[offset..start].iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let parent = self.entries[parent].offset as usize;
            cuts.push(Cut { offset, line: *line, parent, role, is_hidden: at <= visible });
        }
        cuts
    }

    /// For each record, whether a cut before it would separate two records that belong together.
    fn crossed(&self, ids: &Ids<'_>) -> Vec<bool> {
        let mut change = vec![0_i32; self.entries.len() + 2];
        let mut cross = |one: usize, other: usize| {
            let (from, to) = (one.min(other), one.max(other));
            change[from + 1] += 1;
            change[to + 1] -= 1;
        };
        let mut is_on_branch = vec![false; self.entries.len()];
        for (at, parent) in self.branch() {
            is_on_branch[at] = true;
            match parent {
                // The branch's own link may cross the cut before its entry.
                Some(parent) if parent < at => cross(parent, at - 1),
                Some(parent) => cross(at, parent),
                None => {}
            }
        }
        let mut leaf = None;
        for (at, Located { entry, .. }) in self.entries.iter().enumerate() {
            let parent = match &entry.link {
                Link::To(id) if !is_on_branch[at] => ids.parent(id, at),
                _ => None,
            };
            let kept = match &entry.what {
                What::Compaction(FirstKept::Id(id)) => ids.parent(id, at),
                _ => None,
            };
            parent.into_iter().chain(kept).for_each(|other| cross(other, at));
            if let What::Leaf(id) = &entry.what {
                leaf = ids.parent(id, at).map(|last| (last, at)).or(leaf);
            }
        }
        leaf.into_iter().for_each(|(last, at)| cross(last, at));
        for same in self.names.chunk_by(|(one, _), (other, _)| one == other) {
            if let [(_, first), .., (_, last)] = same {
                cross(*first as usize, *last as usize);
            }
        }
        let mut over = 0;
        let crossed = change.iter().take(self.entries.len()).map(|change| {
            over += change;
            over > 0
        });
        crossed.collect()
    }

    /// The first record that the model sees, without those that a compaction keeps.
    fn visible(&self, ids: &Ids<'_>) -> usize {
        let what = |at: usize| &self.entries[at].entry.what;
        let hides =
            |at: &&usize| matches!(what(**at), What::Reset | What::Rewritten | What::Compaction(_));
        let Some(&last) = self.path.branch.iter().rfind(hides) else { return 0 };
        match what(last) {
            What::Compaction(FirstKept::Id(id)) => ids.parent(id, last).unwrap_or(last),
            _ => last,
        }
    }
}
