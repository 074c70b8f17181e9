//! Links each entry of the branch to the one before it, and relinks children of removed entries.
use super::{BranchRepair, NewLine, chain::Step};
use crate::{
    file::{entry::Link, located::Ids, new_line},
    json,
    name::Name,
};
use std::collections::HashMap;

/// State while entries are linked.
struct Linker<'m, 'f> {
    repair: &'m mut BranchRepair<'f>,
    /// How many entries will have each id.
    holders: HashMap<Name, usize>,
    /// How many inserted lines have each id.
    coming: HashMap<Name, usize>,
    /// For removed entries of the branch, the entry before them.
    instead: HashMap<usize, Option<Step>>,
}

impl BranchRepair<'_> {
    /// Links each entry of the branch to the one before it. A compaction will name `renamed`.
    pub(super) fn link(&mut self, renamed: Option<Step>) {
        let mut linker = Linker::of(self);
        if let Some(first) = renamed {
            linker.give_own_id(first);
        }
        let links = linker.links();
        let others = linker.others();
        let member = self.file.form().id_member();
        for (&node, id) in &self.named {
            if !self.edits.is_gone(node) {
                self.edits.set_member(self.file, node, member, &json::quote(id));
            }
        }
        let member = self.file.form().parent_member();
        for (node, parent) in links.into_iter().chain(others) {
            let value = new_line::quoted(parent.and_then(|parent| self.id(parent)));
            self.edits.set_member(self.file, node, member, &value);
            self.relinked.insert(node);
        }
    }
}

impl<'m, 'f> Linker<'m, 'f> {
    fn of(repair: &'m mut BranchRepair<'f>) -> Self {
        let (mut holders, mut coming) = (HashMap::new(), HashMap::new());
        let entries = repair.file.entries.iter().enumerate();
        let stay = entries.filter(|(node, _)| !repair.edits.is_gone(*node));
        let old = stay.map(|(_, located)| &located.entry.id);
        let new = repair.added.values().flatten().map(|new| &new.id);
        for id in new.clone().flatten() {
            *coming.entry(id.clone()).or_default() += 1;
        }
        for id in old.chain(new).flatten() {
            *holders.entry(id.clone()).or_default() += 1;
        }
        Self { repair, holders, coming, instead: HashMap::new() }
    }

    fn has_own_id(&self, step: Step) -> bool {
        self.repair.id(step).is_some_and(|id| self.holders.get(id) == Some(&1))
    }

    /// Gives an entry a unique id unless it has one, so that others can be linked to it.
    fn give_own_id(&mut self, step: Step) {
        if self.has_own_id(step) {
            return;
        }
        let BranchRepair { file, ids, added, named, .. } = &mut *self.repair;
        let file = *file;
        let was = match step {
            Step::Old(node) => {
                let was = &file.entries[node].entry.id;
                let Some(id) = ids.next(was.as_deref(), &file.text(node)) else { return };
                named.insert(node, id.clone());
                self.holders.insert(id, 1);
                was.clone()
            }
            Step::New { at, nth } => {
                let Some(new) = added.get_mut(&at).and_then(|new| new.get_mut(nth)) else { return };
                let NewLine::Moved(node, text) = &new.line else { return };
                let Some(id) = ids.next(new.id.as_deref(), text) else { return };
                named.insert(*node, id.clone());
                self.holders.insert(id.clone(), 1);
                self.coming.insert(id.clone(), 1);
                let was = new.id.replace(id);
                if let Some(coming) = was.as_ref().and_then(|was| self.coming.get_mut(was)) {
                    *coming -= 1;
                }
                was
            }
        };
        if let Some(holders) = was.and_then(|was| self.holders.get_mut(&was)) {
            *holders -= 1;
        }
    }

    /// The entries of the branch whose links change, and their new parents.
    fn links(&mut self) -> Vec<(usize, Option<Step>)> {
        let steps = self.repair.branch();
        let mut links = Vec::new();
        let (mut before, mut parent) = (None, None);
        for &step in &steps {
            match step {
                Step::Old(node) if self.repair.edits.is_gone(node) => {
                    self.instead.insert(node, parent);
                }
                Step::Old(node) if self.follows(node, parent, before) => parent = Some(step),
                _ => {
                    if let Some(parent) = parent {
                        self.give_own_id(parent);
                    }
                    if let Step::Old(node) = step {
                        links.push((node, parent));
                    }
                    parent = Some(step);
                }
            }
            before = Some(step);
        }
        links
    }

    /// Whether an entry is already linked to `parent`; `before` is the entry directly before it.
    fn follows(&self, node: usize, parent: Option<Step>, before: Option<Step>) -> bool {
        let entries = &self.repair.file.entries;
        let Some(parent) = parent else {
            // The first line of a file has no parent in the file, whatever it names.
            let is_first = || entries[..node].iter().all(|located| located.entry.is_outside());
            return entries[node].entry.link == Link::Root || before.is_none() && is_first();
        };
        let is_next = before == Some(parent);
        match &entries[node].entry.link {
            Link::Root => false,
            Link::Before => is_next,
            // Of several entries with one id the nearest is the parent.
            Link::To(to) => {
                let is_meant = is_next && matches!(parent, Step::Old(_)) && !self.comes(to);
                self.repair.id(parent) == Some(to) && (self.has_own_id(parent) || is_meant)
            }
        }
    }

    /// Whether an inserted line has this id.
    fn comes(&self, id: &str) -> bool {
        self.coming.get(id).is_some_and(|&lines| lines > 0)
    }

    /// The entries beside the branch whose parent was removed or renamed, and their new parents.
    fn others(&self) -> Vec<(usize, Option<Step>)> {
        let repair = &*self.repair;
        let entries = &repair.file.entries;
        if repair.named.is_empty() && !(0..entries.len()).any(|node| repair.edits.is_gone(node)) {
            return Vec::new();
        }
        let ids = Ids::of(entries);
        let parent_of = |node: usize| match &entries[node].entry.link {
            Link::To(id) => ids.parent(id, node),
            _ => None,
        };
        let moved = repair.branch().into_iter().filter_map(|step| {
            let Step::New { at, nth } = step else { return None };
            let NewLine::Moved(node, _) = repair.added[&at][nth].line else { return None };
            Some((node, step))
        });
        let moved: HashMap<usize, Step> = moved.collect();
        // The nearest ancestor that is kept; cached for the entries on the path.
        let mut known: HashMap<usize, Option<Step>> = HashMap::new();
        let mut stays = |mut node: usize| {
            let mut way = Vec::new();
            let found = loop {
                if let Some(step) = moved.get(&node) {
                    break Some(*step);
                } else if let Some(instead) = self.instead.get(&node).or(known.get(&node)) {
                    break *instead;
                } else if !repair.edits.is_gone(node) {
                    break Some(Step::Old(node));
                }
                // In a cycle of links, no ancestor is kept.
                known.insert(node, None);
                way.push(node);
                let Some(parent) = parent_of(node) else { break None };
                node = parent;
            };
            known.extend(way.into_iter().map(|node| (node, found)));
            found
        };
        let is_beside =
            |node: &usize| !repair.steps.contains_key(node) && !repair.edits.is_gone(*node);
        let beside = (0..entries.len()).filter(is_beside);
        let links = beside.filter_map(|node| {
            let parent = parent_of(node)?;
            let now = stays(parent);
            let id = now.and_then(|now| repair.id(now));
            (id != entries[parent].entry.id.as_deref()).then_some((node, now))
        });
        links.collect()
    }
}
