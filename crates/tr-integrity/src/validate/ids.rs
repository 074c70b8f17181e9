//! Where ids are used: a few bytes for each, however long it is. The last uses are forgotten
//! without a look at their messages.
use std::{
    hash::{BuildHasher, RandomState},
    iter,
};

/// Where each id is used, in the order of the messages, and what is known of each use.
///
/// A hash of 64 bits under a random key stands for an id. That two of a million ids share one
/// happens once in thirty million sessions.
///
/// It is a hash table whose entries stand in one list as they came. A bucket is a chain of links
/// through that list, to the last use of each of its ids. So the last entry is undone by putting
/// back the one link that leads to it.
#[derive(Clone, Debug)]
pub(super) struct Ids<T = ()> {
    key: RandomState,
    uses: Vec<Use<T>>,
    /// None, or a power of two; not less than there are uses.
    buckets: Vec<Link>,
}

#[derive(Clone, Debug)]
struct Use<T> {
    id: Id,
    message: u32,
    /// To the bucket's next id.
    next: Link,
    /// To the use of this id before this one.
    before: Link,
    what: T,
}

/// What stands for an id, in 4-byte parts: so a use takes 20 bytes, not 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id(u32, u32);

/// To a use, or to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u32);

const NONE: Link = Link::NONE;

/// Buckets at the first use.
const FIRST: usize = 16;

impl<T> Default for Ids<T> {
    fn default() -> Self {
        Self { key: RandomState::new(), uses: Vec::new(), buckets: Vec::new() }
    }
}

impl<T> Ids<T> {
    /// Notes that `message`, the last so far, uses `id`; says whether it was used before.
    pub(super) fn note(&mut self, id: &str, message: usize, what: T) -> bool {
        if self.uses.len() == self.buckets.len() {
            self.grow();
        }
        let (id, message) = (self.id(id), number(message));
        self.uses.push(Use { id, message, next: NONE, before: NONE, what });
        self.link(self.uses.len() - 1)
    }

    /// The last message that uses `id`.
    pub(super) fn last(&self, id: &str) -> Option<usize> {
        self.of(id).next().map(|at| self.uses[at].message as usize)
    }

    /// The uses of `id`, the last first.
    pub(super) fn of(&self, id: &str) -> impl Iterator<Item = usize> + use<'_, T> {
        let (_, last) = self.find(self.id(id));
        iter::successors(last.at(), |&at| self.uses[at].before.at())
    }

    /// In which message a use is.
    pub(super) fn message(&self, at: usize) -> usize {
        self.uses[at].message as usize
    }

    /// What is known of a use.
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

    /// Forgets the uses in all but the first `len` messages. Costs what is forgotten.
    pub(super) fn truncate(&mut self, len: usize) {
        while self.pop_from(len).is_some() {}
    }

    /// Forgets the last use, if it is in none of the first `len` messages; tells which use of its id
    /// comes before it.
    pub(super) fn pop_from(&mut self, len: usize) -> Option<Option<usize>> {
        let last = self.uses.last().filter(|last| last.message as usize >= len)?;
        let Use { id, next, before, .. } = *last;
        let (leading, _) = self.find(id);
        self.lead(id, leading, if before == NONE { next } else { before });
        self.uses.pop();
        Some(before.at())
    }

    /// Makes a use the last of its id; says whether there is one before.
    fn link(&mut self, at: usize) -> bool {
        let id = self.uses[at].id;
        let (leading, before) = self.find(id);
        let (leading, next) = match before.at() {
            // In the place of that: a chain is no longer for an id that comes often.
            Some(before) => (leading, self.uses[before].next),
            None => (NONE, self.buckets[self.bucket(id)]),
        };
        (self.uses[at].next, self.uses[at].before) = (next, before);
        self.lead(id, leading, Link(number(at)));
        before != NONE
    }

    /// The link to the last use of `id`, and to the use whose link that is; none if it is the
    /// bucket's.
    fn find(&self, id: Id) -> (Link, Link) {
        let bucket = self.buckets.get(self.bucket(id));
        let (mut leading, mut link) = (NONE, bucket.copied().unwrap_or(NONE));
        while let Some(at) = link.at().filter(|&at| self.uses[at].id != id) {
            (leading, link) = (link, self.uses[at].next);
        }
        (leading, link)
    }

    /// Sets the link that `leading` has in the chain of `id`.
    fn lead(&mut self, id: Id, leading: Link, link: Link) {
        let bucket = self.bucket(id);
        match leading.at() {
            Some(at) => self.uses[at].next = link,
            None => self.buckets[bucket] = link,
        }
    }

    fn grow(&mut self) {
        self.buckets = vec![NONE; (2 * self.buckets.len()).max(FIRST)];
        for at in 0..self.uses.len() {
            self.link(at);
        }
    }

    fn id(&self, id: &str) -> Id {
        let hash = self.key.hash_one(id);
        Id((hash >> 32) as u32, hash as u32)
    }

    fn bucket(&self, Id(_, low): Id) -> usize {
        low as usize & self.buckets.len().wrapping_sub(1)
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

/// No session has more messages or uses than this counts.
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
