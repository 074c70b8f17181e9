//! Entries with their positions in a file, and the positions of their ids.
use super::entry;
use crate::name::Name;
use std::collections::{HashMap, hash_map::Entry};

/// An entry and its position in the file.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) entry: entry::Entry,
    pub(super) place: Place,
}

/// Where a record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Its number among the file's records.
    pub(super) number: u64,
    pub(super) line: u64,
    pub(super) offset: u64,
}

impl Located {
    /// Whether this is its id.
    pub(super) fn is(&self, id: &Name) -> bool {
        self.entry.id.as_ref() == Some(id)
    }
}

/// The positions of each id.
pub(super) struct Ids<'e> {
    /// The first position of each.
    first: HashMap<&'e str, usize>,
    /// All positions of the ids that occur more than once.
    more: HashMap<&'e str, Vec<usize>>,
}

impl<'e> Ids<'e> {
    pub(super) fn of(entries: &'e [Located]) -> Self {
        Self::among(entries, |_| true)
    }

    /// The first position of an id.
    pub(super) fn first(&self, id: &str) -> Option<usize> {
        self.first.get(id).copied()
    }

    /// The positions of the wanted ids.
    pub(super) fn among(entries: &'e [Located], is_wanted: impl Fn(&str) -> bool) -> Self {
        let (mut first, mut more) = (HashMap::new(), HashMap::<&str, Vec<usize>>::new());
        for (at, located) in entries.iter().enumerate() {
            let Some(id) = located.entry.id.as_deref().filter(|id| is_wanted(id)) else { continue };
            match first.entry(id) {
                Entry::Vacant(first) => drop(first.insert(at)),
                Entry::Occupied(first) => {
                    more.entry(id).or_insert_with(|| vec![*first.get()]).push(at);
                }
            }
        }
        Self { first, more }
    }

    /// The nearest entry with this id before `child`, else the first one after it.
    pub(super) fn parent(&self, id: &str, child: usize) -> Option<usize> {
        let first = *self.first.get(id)?;
        let Some(places) = self.more.get(id) else { return Some(first) };
        let behind = places.partition_point(|&at| at < child);
        let nearest = behind.checked_sub(1).unwrap_or(behind);
        places.get(nearest).copied()
    }
}
