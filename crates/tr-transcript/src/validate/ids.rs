//! An index of ids in a few bytes for each use, whatever the length of the id. The last uses can be
//! removed without reading their messages.
use hashbrown::HashTable;
use std::{
    hash::{BuildHasher, RandomState},
    iter,
};

/// The uses of each id in the order of the messages, and a value for each use.
///
/// A 64-bit hash under a random key represents an id. In a session with a million ids the chance of
/// a collision is about one in thirty million.
///
/// The uses are in one list in order, and a table has the last use of each id. So removing the last
/// use puts the one before it into the table.
#[derive(Clone, Debug)]
pub(super) struct Ids<T = ()> {
    key: RandomState,
    uses: Vec<Use<T>>,
    /// The last use of each id.
    last: HashTable<u32>,
}

#[derive(Clone, Debug)]
struct Use<T> {
    id: u64,
    message: u32,
    /// The use of this id before this one.
    before: Link,
    what: T,
}

/// A link to a use, or to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u32);

const NONE: Link = Link::NONE;

impl<T> Default for Ids<T> {
    fn default() -> Self {
        Self { key: RandomState::new(), uses: Vec::new(), last: HashTable::new() }
    }
}

impl<T> Ids<T> {
    /// Adds a use of `id` in `message`, which is the last so far; returns whether `id` was used
    /// before.
    pub(super) fn note(&mut self, id: &str, message: usize, what: T) -> bool {
        let (id, message) = (self.key.hash_one(id), number(message));
        let at = number(self.uses.len());
        let before = self.set_last(id, at);
        self.uses.push(Use { id, message, before, what });
        before != NONE
    }

    /// The last message that uses `id`.
    pub(super) fn last(&self, id: &str) -> Option<usize> {
        self.of(id).next().map(|at| self.uses[at].message as usize)
    }

    /// The uses of `id`, the last first.
    pub(super) fn of(&self, id: &str) -> impl Iterator<Item = usize> + use<'_, T> {
        let id = self.key.hash_one(id);
        let last = self.last.find(id, |&at| self.uses[at as usize].id == id);
        iter::successors(last.map(|&at| at as usize), |&at| self.uses[at].before.at())
    }

    /// The message of a use.
    pub(super) fn message(&self, at: usize) -> usize {
        self.uses[at].message as usize
    }

    /// The value of a use.
    pub(super) fn what(&self, at: usize) -> &T {
        &self.uses[at].what
    }

    pub(super) fn what_mut(&mut self, at: usize) -> &mut T {
        &mut self.uses[at].what
    }

    /// How many uses there are.
    pub(super) const fn len(&self) -> usize {
        self.uses.len()
    }

    /// Removes the uses in all but the first `len` messages. Takes time for the removed ones only.
    pub(super) fn truncate(&mut self, len: usize) {
        while self.pop_from(len).is_some() {}
    }

    /// Removes the last use, unless it is in the first `len` messages; returns the use of its id
    /// before it.
    pub(super) fn pop_from(&mut self, len: usize) -> Option<Option<usize>> {
        let last = self.uses.pop_if(|last| last.message as usize >= len)?;
        let at = number(self.uses.len());
        if let Ok(mut entry) = self.last.find_entry(last.id, |&other| other == at) {
            match last.before.at() {
                Some(before) => *entry.get_mut() = number(before),
                None => drop(entry.remove()),
            }
        }
        Some(last.before.at())
    }

    /// Makes the use at `at` the last of its id; returns the last one so far.
    fn set_last(&mut self, id: u64, at: u32) -> Link {
        let is_same = |&at: &u32| self.uses[at as usize].id == id;
        if let Some(last) = self.last.find_mut(id, is_same) {
            return Link(std::mem::replace(last, at));
        }
        let hash = |&at: &u32| self.uses[at as usize].id;
        self.last.insert_unique(id, at, hash);
        NONE
    }
}

impl Link {
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) fn to(at: usize) -> Self {
        Self(number(at))
    }

    pub(super) fn at(self) -> Option<usize> {
        (self != NONE).then_some(self.0 as usize)
    }
}

/// Narrows an index; no session has more messages or uses than a `u32` counts.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::Ids;
    use proptest::{collection::vec, prelude::*};

    #[test]
    fn uses_are_forgotten_from_the_last_on() {
        let mut ids = Ids::default();
        assert!(!ids.note("a", 1, ()));
        assert!(ids.note("a", 3, ()));
        assert!(ids.note("a", 3, ()));
        assert!(!ids.note("b", 4, ()));
        ids.truncate(5);
        assert_eq!((ids.last("a"), ids.last("b"), ids.last("c")), (Some(3), Some(4), None));
        ids.truncate(3);
        assert_eq!((ids.last("a"), ids.last("b")), (Some(1), None));
        ids.truncate(0);
        assert_eq!(ids.last("a"), None);
        assert!(!ids.note("a", 1, ()));
    }

    proptest! {
        /// As a plain list of them would.
        #[test]
        fn what_is_left_is_as_if_nothing_else_had_come(
            steps in vec((0..40_u8, 0..200_usize, 0..20_u8), 0..300),
        ) {
            let (mut ids, mut list) = (Ids::default(), Vec::new());
            for (message, (id, len, cuts)) in steps.into_iter().enumerate() {
                let known = list.iter().any(|(known, _)| *known == id);
                prop_assert_eq!(ids.note(&id.to_string(), message, id), known);
                list.push((id, message));
                if cuts > 0 {
                    continue;
                }
                ids.truncate(len);
                list.retain(|&(_, message)| message < len);
                for id in 0..40 {
                    let of = ids.of(&id.to_string()).map(|at| (*ids.what(at), ids.message(at)));
                    let listed = list.iter().rev().filter(|(listed, _)| *listed == id).copied();
                    prop_assert_eq!(of.collect::<Vec<_>>(), listed.collect::<Vec<_>>());
                }
            }
        }
    }
}
