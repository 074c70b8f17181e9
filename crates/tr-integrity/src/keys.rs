//! The keys of a list of uses, and which of these still wait: a result finds its own at once, however
//! many there are.
use crate::{message::Kind, name::Name};
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

/// By what a use and its result know each other: by id, and where one has none, by name.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) id: Name,
    has_id: bool,
    /// Empty where names say nothing.
    name: Box<str>,
}

impl Key {
    pub(crate) const fn has_id(&self) -> bool {
        self.has_id
    }

    /// The tool's name; empty where names say nothing.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Under what a use with this key is found, so that it is found by each key that pairs with it,
    /// and by no other.
    pub(crate) fn found_under(&self) -> impl Iterator<Item = Under<'_>> {
        let (id, name, is_named) = (&*self.id, &*self.name, !self.name.is_empty());
        let by_id = (self.has_id || !is_named).then_some(Under::OwnId(id));
        let only = (!is_named).then_some(Under::OnlyId(id));
        let by_name = is_named.then_some(Under::Name(name));
        let nameless = (is_named && !self.has_id).then_some(Under::OnlyName(name));
        [Some(Under::Id(id)), by_id, only, by_name, nameless].into_iter().flatten()
    }

    /// Where the uses that pair with this key are found; none of them in two places.
    pub(crate) fn sought_under(&self) -> impl Iterator<Item = Under<'_>> {
        let (id, name) = (&*self.id, &*self.name);
        let (one, other) = match self.has_id {
            _ if name.is_empty() => (Under::Id(id), None),
            true => (Under::OwnId(id), Some(Under::OnlyName(name))),
            false => (Under::OnlyId(id), Some(Under::Name(name))),
        };
        std::iter::once(one).chain(other)
    }

    pub(crate) fn pairs(&self, other: &Self) -> bool {
        if self.has_id && other.has_id || self.name.is_empty() || other.name.is_empty() {
            return self.id == other.id;
        }
        self.name == other.name
    }
}

/// Under what a use is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Under<'k> {
    /// The id, of any use.
    Id(&'k str),
    /// The id, of a use that has one, or that has no name either.
    OwnId(&'k str),
    /// The id, of a use without a name.
    OnlyId(&'k str),
    /// The name, of any use that has one.
    Name(&'k str),
    /// The name, of a use without an id.
    OnlyName(&'k str),
}

impl Kind {
    /// The key of a use or a result; names are part of it where they may pair.
    pub(crate) fn key(&self, names_pair: bool) -> Option<Key> {
        let (Self::Use { id, id_at, name, .. } | Self::Result { id, id_at, name, .. }) = self
        else {
            return None;
        };
        let name = if names_pair { name.clone() } else { Box::default() };
        Some(Key { id: Name::from(&**id), has_id: id_at.is_some(), name })
    }
}

/// The keys of uses in their order, and which of them wait for a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// Attackers choose ids: what stands for one is its hash under a random key.
    hasher: RandomState,
    lists: HashMap<u64, List>,
    links: Vec<Link>,
    answered: Vec<bool>,
}

/// The uses that are found under one name.
#[derive(Clone, Copy, Debug)]
struct List {
    /// The link to the first of them that waits; none, if all are answered.
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    used: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// Which use a key is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Of none.
    None,
    /// The first that waits.
    Waits(usize),
    /// All are answered: the last.
    Answered(usize),
}

impl Keys {
    /// Of these uses, all of which wait.
    pub(crate) fn of<'k>(keys: impl IntoIterator<Item = &'k Key>) -> Self {
        let mut all = Self::default();
        keys.into_iter().for_each(|key| all.push(key));
        all
    }

    /// Adds a use, which waits.
    pub(crate) fn push(&mut self, key: &Key) {
        let used = number(self.answered.len());
        self.answered.push(false);
        for under in key.found_under() {
            let at = number(self.links.len());
            self.links.push(Link { used, next: NONE });
            let list = self.lists.entry(self.hasher.hash_one(under));
            let list = list.or_insert(List { first: NONE, last: at });
            if list.last != at {
                self.links[list.last as usize].next = at;
            }
            if list.first == NONE {
                list.first = at;
            }
            list.last = at;
        }
    }

    /// The first use that waits of those that a result's key pairs with, else the last of them.
    pub(crate) fn find(&self, key: &Key) -> Place {
        let lists = key.sought_under().filter_map(|it| self.lists.get(&self.hasher.hash_one(it)));
        let used = |at: u32| self.links.get(at as usize).map(|link| link.used as usize);
        let (mut waits, mut last) = (None, None);
        for list in lists {
            waits = waits.into_iter().chain(used(list.first)).min();
            last = last.max(used(list.last));
        }
        match (waits, last) {
            (Some(used), _) => Place::Waits(used),
            (None, Some(used)) => Place::Answered(used),
            (None, None) => Place::None,
        }
    }

    /// The first use with this id that waits.
    pub(crate) fn waiting_with(&self, id: &str) -> Option<usize> {
        let list = self.lists.get(&self.hasher.hash_one(Under::Id(id)))?;
        self.links.get(list.first as usize).map(|link| link.used as usize)
    }

    /// The use with this key is answered.
    pub(crate) fn answer(&mut self, used: usize, key: &Key) {
        self.answered[used] = true;
        for under in key.found_under() {
            let Some(list) = self.lists.get_mut(&self.hasher.hash_one(under)) else { continue };
            // Those in between are passed over once the first is.
            while let Some(link) = self.links.get(list.first as usize) {
                if !self.answered[link.used as usize] {
                    break;
                }
                list.first = link.next;
            }
        }
    }
}

/// Which calls there are, and which of them are answered.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    hasher: RandomState,
    are_answered: HashMap<u64, bool>,
}

impl Calls {
    /// Of the keys of these uses, each with whether it is answered.
    pub(crate) fn of<'k>(keys: impl Iterator<Item = (&'k Key, bool)>) -> Self {
        let mut calls = Self::default();
        for (key, is_answered) in keys {
            for under in key.found_under() {
                let answered = calls.are_answered.entry(calls.hasher.hash_one(under));
                *answered.or_default() |= is_answered;
            }
        }
        calls
    }

    /// Whether one of the calls that a result names is answered; `None` if there is none.
    pub(crate) fn are_answered(&self, key: &Key) -> Option<bool> {
        let hash = |under| self.are_answered.get(&self.hasher.hash_one(under)).copied();
        key.sought_under().filter_map(hash).reduce(|one, other| one || other)
    }
}

/// No message has more uses than this counts.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::{Calls, Key, Keys, Place};
    use proptest::{collection::vec, prelude::*};

    fn key() -> impl Strategy<Value = Key> {
        let text = |texts: &'static [&'static str]| prop::sample::select(texts);
        (text(&["", "a", "b", "f"]), any::<bool>(), text(&["", "f", "g", "a"]))
            .prop_map(|(id, has_id, name)| Key { id: id.into(), has_id, name: name.into() })
    }

    proptest! {
        /// As if each use were asked whether it pairs.
        #[test]
        fn what_pairs_is_found(
            uses in vec(key(), 0..20),
            results in vec((key(), any::<bool>()), 0..30),
        ) {
            let mut keys = Keys::of(&uses);
            let mut waits = vec![true; uses.len()];
            for (key, answers) in &results {
                let same = || (0..uses.len()).filter(|&used| uses[used].pairs(key));
                let place = match (same().find(|&used| waits[used]), same().next_back()) {
                    (Some(used), _) => Place::Waits(used),
                    (None, Some(used)) => Place::Answered(used),
                    (None, None) => Place::None,
                };
                prop_assert_eq!(keys.find(key), place);
                let mut waiting = (0..uses.len()).filter(|&used| waits[used]);
                let first = waiting.find(|&used| uses[used].id == key.id);
                prop_assert_eq!(keys.waiting_with(&key.id), first);
                if let (Place::Waits(used), true) = (place, answers) {
                    waits[used] = false;
                    keys.answer(used, &uses[used]);
                }
            }
            let calls = Calls::of(uses.iter().zip(waits.iter().map(|waits| !waits)));
            for (key, _) in &results {
                let same = || (0..uses.len()).filter(|&used| uses[used].pairs(key));
                let are_answered = same().next().map(|_| same().any(|used| !waits[used]));
                prop_assert_eq!(calls.are_answered(key), are_answered);
            }
        }
    }
}
