//! Where ids are used: a few bytes for each, however long it is.
use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState},
};

/// Where each id is used: last, and before that.
///
/// A hash of 64 bits under a random key stands for an id. That two of a million ids share one
/// happens once in thirty million sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    key: RandomState,
    /// Several, so that not all of it is twice there while it grows.
    last: [HashMap<Id, u32, BuildHasherDefault<AsItIs>>; SHARDS],
    /// Most ids are used once.
    before: HashMap<(Id, u32), u32>,
}

const SHARDS: usize = 16;

/// What stands for an id, in 4-byte parts: with the number of a message it takes 12 bytes, not 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id(u32, u32);

/// What is hashed already.
#[derive(Clone, Copy, Debug, Default)]
struct AsItIs(u64);

impl Ids {
    /// Notes that message `at` uses `id`; says whether it was used before.
    pub(super) fn note(&mut self, id: &str, at: usize) -> bool {
        let (id, at) = (self.id(id), number(at));
        let Some(before) = self.last[id.shard()].insert(id, at) else { return false };
        // Twice in one message is once to go back to.
        if before != at {
            self.before.insert((id, at), before);
        }
        true
    }

    /// The last message that uses `id`.
    pub(super) fn last(&self, id: &str) -> Option<usize> {
        let id = self.id(id);
        self.last[id.shard()].get(&id).map(|&at| at as usize)
    }

    /// Forgets that message `at`, the last that may use it, uses `id`.
    pub(super) fn forget(&mut self, id: &str, at: usize) {
        let (id, at) = (self.id(id), number(at));
        let last = &mut self.last[id.shard()];
        if last.get(&id) != Some(&at) {
            return;
        }
        match self.before.remove(&(id, at)) {
            Some(before) => drop(last.insert(id, before)),
            None => drop(last.remove(&id)),
        }
    }

    fn id(&self, id: &str) -> Id {
        let hash = self.key.hash_one(id);
        Id((hash >> 32) as u32, hash as u32)
    }
}

impl Id {
    /// Of bits that the map looks at least.
    const fn shard(self) -> usize {
        (self.0 >> 16) as usize % SHARDS
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.0) << 32 | u64::from(self.1));
    }
}

/// No session has more messages than this counts.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::Ids;

    #[test]
    fn uses_are_forgotten_from_the_last_on() {
        let mut ids = Ids::default();
        assert!(!ids.note("a", 1));
        assert!(ids.note("a", 3));
        assert!(ids.note("a", 3));
        assert!(!ids.note("b", 4));
        ids.forget("a", 4);
        assert_eq!((ids.last("a"), ids.last("b"), ids.last("c")), (Some(3), Some(4), None));
        ids.forget("a", 3);
        ids.forget("a", 3);
        assert_eq!(ids.last("a"), Some(1));
        ids.forget("a", 1);
        assert_eq!(ids.last("a"), None);
        assert!(!ids.note("a", 1));
    }
}
