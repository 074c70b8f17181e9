//! The keys of a list of uses, indexed so that a result finds its waiting use in constant time.
use crate::{message::Kind, name::Name};
use smallvec::SmallVec;
use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

/// Pairs a use with its result: by id, or by the tool's name where one of them has no id.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) id: Name,
    pub(crate) has_id: bool,
    /// The tool's name; empty where names do not pair.
    pub(crate) name: Box<str>,
}

impl Kind {
    /// The key of a use or a result; with `names_pair`, names are part of it.
    pub(crate) fn key(&self, names_pair: bool) -> Option<Key> {
        let (Self::Use { id, id_at, name, .. } | Self::Result { id, id_at, name, .. }) = self
        else {
            return None;
        };
        let name = if names_pair { name.clone() } else { Box::default() };
        Some(Key { id: id.clone(), has_id: id_at.is_some(), name })
    }
}

impl Key {
    /// The index entries of a use with this key: each key that pairs with it finds it, and no other
    /// key does.
    pub(crate) fn found_under(&self) -> impl Iterator<Item = IndexKey<'_>> {
        let (id, name, is_named) = (&*self.id, &*self.name, !self.name.is_empty());
        let by_id = (self.has_id || !is_named).then_some(IndexKey::OwnId(id));
        let only = (!is_named).then_some(IndexKey::OnlyId(id));
        let by_name = is_named.then_some(IndexKey::Name(name));
        let nameless = (is_named && !self.has_id).then_some(IndexKey::OnlyName(name));
        [Some(IndexKey::Id(id)), by_id, only, by_name, nameless].into_iter().flatten()
    }

    /// The index entries that hold the uses that pair with this key; no use is in two of them.
    pub(crate) fn sought_under(&self) -> impl Iterator<Item = IndexKey<'_>> {
        let (id, name) = (&*self.id, &*self.name);
        let (one, other) = match self.has_id {
            _ if name.is_empty() => (IndexKey::Id(id), None),
            true => (IndexKey::OwnId(id), Some(IndexKey::OnlyName(name))),
            false => (IndexKey::OnlyId(id), Some(IndexKey::Name(name))),
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

/// An index entry for uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum IndexKey<'k> {
    /// By id: any use.
    Id(&'k str),
    /// By id: a use with an id of its own, or with neither id nor name.
    OwnId(&'k str),
    /// By id: a use without a name.
    OnlyId(&'k str),
    /// By name: any use with a name.
    Name(&'k str),
    /// By name: a use without an id.
    OnlyName(&'k str),
}

/// The keys of uses in order, and which of the uses wait for a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// Randomly keyed, because ids may be chosen by an attacker: their hashes stand for them.
    hasher: RandomState,
    lists: HashMap<u64, List>,
    answered: Vec<bool>,
}

/// The uses of one index entry.
#[derive(Clone, Debug, Default)]
struct List {
    uses: SmallVec<[u32; 4]>,
    /// How many of them at the beginning are answered.
    answered: usize,
}

impl List {
    /// The first of them that waits.
    fn waits(&self) -> Option<usize> {
        self.uses.get(self.answered).map(|&used| used as usize)
    }
}

/// The result of looking up a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// No use has this key.
    None,
    /// The first use that waits.
    Waits(usize),
    /// All are answered: the last use.
    Answered(usize),
}

impl Keys {
    /// Indexes these uses, all of which wait.
    pub(crate) fn of(keys: impl IntoIterator<Item: Borrow<Key>>) -> Self {
        let mut all = Self::default();
        keys.into_iter().for_each(|key| all.push(key.borrow()));
        all
    }

    /// Whether a use has this key.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.find(key) != Lookup::None
    }

    /// Adds a use, which waits.
    pub(crate) fn push(&mut self, key: &Key) {
        // No message has more uses than this counts.
        let used = u32::try_from(self.answered.len()).unwrap_or(u32::MAX);
        self.answered.push(false);
        for under in key.found_under() {
            self.lists.entry(self.hasher.hash_one(under)).or_default().uses.push(used);
        }
    }

    /// The first waiting use that pairs with a result's key, else the last use that does.
    pub(crate) fn find(&self, key: &Key) -> Lookup {
        let lists = key.sought_under().filter_map(|it| self.lists.get(&self.hasher.hash_one(it)));
        let (mut waits, mut last) = (None, None);
        for list in lists {
            waits = waits.into_iter().chain(list.waits()).min();
            last = last.max(list.uses.last().map(|&used| used as usize));
        }
        match (waits, last) {
            (Some(used), _) => Lookup::Waits(used),
            (None, Some(used)) => Lookup::Answered(used),
            (None, None) => Lookup::None,
        }
    }

    /// The first waiting use with this id.
    pub(crate) fn waiting_with(&self, id: &str) -> Option<usize> {
        self.lists.get(&self.hasher.hash_one(IndexKey::Id(id)))?.waits()
    }

    /// Marks the use with this key as answered.
    pub(crate) fn answer(&mut self, used: usize, key: &Key) {
        self.answered[used] = true;
        for under in key.found_under() {
            let Some(list) = self.lists.get_mut(&self.hasher.hash_one(under)) else { continue };
            // Each is skipped once.
            while list.waits().is_some_and(|used| self.answered[used]) {
                list.answered += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Keys, Lookup};
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
                    (Some(used), _) => Lookup::Waits(used),
                    (None, Some(used)) => Lookup::Answered(used),
                    (None, None) => Lookup::None,
                };
                prop_assert_eq!(keys.find(key), place);
                let mut waiting = (0..uses.len()).filter(|&used| waits[used]);
                let first = waiting.find(|&used| uses[used].id == key.id);
                prop_assert_eq!(keys.waiting_with(&key.id), first);
                if let (Lookup::Waits(used), true) = (place, answers) {
                    waits[used] = false;
                    keys.answer(used, &uses[used]);
                }
            }
        }
    }
}
