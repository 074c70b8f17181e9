//! Entries with their positions in a file, and the positions of their ids.
use super::entry;
use smallvec::SmallVec;
use std::collections::HashMap;

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

/// The positions of each id, in order.
pub(super) struct Ids<'e>(HashMap<&'e str, SmallVec<[usize; 1]>>);

impl<'e> Ids<'e> {
    pub(super) fn of(entries: &'e [Located]) -> Self {
        Self::among(entries, |_| true)
    }

    /// The first position of an id.
    pub(super) fn first(&self, id: &str) -> Option<usize> {
        self.0.get(id).map(|places| places[0])
    }

    /// The positions of the wanted ids.
    pub(super) fn among(entries: &'e [Located], is_wanted: impl Fn(&str) -> bool) -> Self {
        let mut places = HashMap::<_, SmallVec<_>>::new();
        for (at, located) in entries.iter().enumerate() {
            if let Some(id) = located.entry.id.as_deref().filter(|id| is_wanted(id)) {
                places.entry(id).or_default().push(at);
            }
        }
        Self(places)
    }

    /// The nearest entry with this id before `child`, else the first one after it.
    pub(super) fn parent(&self, id: &str, child: usize) -> Option<usize> {
        let places = self.0.get(id)?;
        let behind = places.partition_point(|&at| at < child);
        let nearest = behind.checked_sub(1).unwrap_or(behind);
        places.get(nearest).copied()
    }
}
