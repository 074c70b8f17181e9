//! The breakers of one layer by key, bounded.
use crate::{
    clock,
    gate::Gate,
    hub::Hub,
    permit::Node,
    settings::Settings,
    sync::{STRIPES, held},
};
use hashbrown::HashTable;
use std::{
    array, fmt,
    sync::{Arc, Mutex, RwLock, RwLockWriteGuard},
};
use tr_core::{KeyRef, manifest::BreakerOverride, stripe};

/// The breakers of one layer by key.
///
/// Locks are taken in this order: that of the breakers, the shards' by stripe, a breaker's own.
pub(crate) struct Breakers {
    settings: Arc<Settings>,
    hub: Arc<Hub>,
    capacity: usize,
    /// What the keys share for which there is no room.
    overflow: Arc<Gate>,
    listed: Mutex<Listed>,
    shards: [Shard; STRIPES],
}

/// Which breakers there are.
#[derive(Default)]
struct Listed {
    slots: Vec<Arc<Gate>>,
    /// Where in `slots` a key's breaker is.
    index: HashTable<usize>,
    /// Where the search for one that may go continues.
    hand: usize,
}

/// The breakers that threads of one stripe have met, under a lock of their own.
#[repr(align(128))]
struct Shard {
    met: RwLock<HashTable<Arc<Node>>>,
    overflow: Arc<Node>,
}

/// Breakers looked at for one that may go, before a new key is sent to the overflow.
const LOOKS: usize = 16;

/// What the overflow breaker is called.
const OVERFLOW: &str = "_overflow";

/// What is known of a key that has no breaker yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed<'r> {
    /// What events call the tool.
    pub(crate) label: &'r str,
    pub(crate) change: BreakerOverride,
}

impl Breakers {
    pub(crate) fn new(settings: Settings, capacity: usize, hub: Hub) -> Self {
        let (settings, hub) = (Arc::new(settings), Arc::new(hub));
        let key = KeyRef::new(OVERFLOW);
        let overflow = Gate::new(key, OVERFLOW, settings.clone(), hub.clone(), clock::now());
        let overflow = Arc::new(overflow);
        let shards = array::from_fn(|stripe| Shard {
            met: RwLock::default(),
            overflow: Arc::new(Node { gate: overflow.clone(), stripe }),
        });
        Self { settings, hub, capacity, overflow, listed: Mutex::default(), shards }
    }

    /// The breaker of this key, as this thread's stripe holds it; made if there is room.
    #[inline]
    pub(crate) fn node<'r>(&self, key: KeyRef<'_>, seed: impl FnOnce() -> Seed<'r>) -> Arc<Node> {
        let stripe = stripe() % STRIPES;
        let met = held(self.shards[stripe].met.read());
        if let Some(node) = met.find(key.hash, |node| node.gate.is(key)) {
            return node.clone();
        }
        drop(met);
        self.meet(stripe, key, seed())
    }

    #[cold]
    fn meet(&self, stripe: usize, key: KeyRef<'_>, seed: Seed<'_>) -> Arc<Node> {
        let shard = &self.shards[stripe];
        // Held to the end: else the breaker could be evicted, and met after that.
        let mut listed = held(self.listed.lock());
        let Some(gate) = self.find_or_make(&mut listed, key, seed) else {
            return shard.overflow.clone();
        };
        let mut met = held(shard.met.write());
        if let Some(node) = met.find(key.hash, |node| node.gate.is(key)) {
            return node.clone();
        }
        let node = Arc::new(Node { gate, stripe });
        met.insert_unique(key.hash, node.clone(), |node| node.gate.hash());
        node
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<Arc<Gate>> {
        held(self.listed.lock()).get(key)
    }

    pub(crate) fn get_or_make(&self, key: KeyRef<'_>) -> Arc<Gate> {
        let seed = Seed { label: key.name, change: BreakerOverride::default() };
        let mut listed = held(self.listed.lock());
        self.find_or_make(&mut listed, key, seed).unwrap_or_else(|| self.overflow.clone())
    }

    pub(crate) fn all(&self) -> Vec<Arc<Gate>> {
        held(self.listed.lock()).slots.clone()
    }

    pub(crate) const fn overflow(&self) -> &Arc<Gate> {
        &self.overflow
    }

    /// `None` if there is no room.
    fn find_or_make(
        &self,
        listed: &mut Listed,
        key: KeyRef<'_>,
        seed: Seed<'_>,
    ) -> Option<Arc<Gate>> {
        if let Some(gate) = listed.get(key) {
            return Some(gate);
        }
        let room = if listed.slots.len() < self.capacity {
            listed.slots.len()
        } else {
            self.make_room(listed)?
        };
        let settings = match seed.change {
            change if change == BreakerOverride::default() => self.settings.clone(),
            change => Arc::new(self.settings.with(change)),
        };
        let gate = Gate::new(key, seed.label, settings, self.hub.clone(), clock::now());
        Some(listed.put(room, Arc::new(gate)))
    }

    /// Frees the slot of a breaker that would decide the same if it were made anew.
    fn make_room(&self, listed: &mut Listed) -> Option<usize> {
        let count = listed.slots.len();
        let freed = (0..count.min(LOOKS))
            .map(|step| (listed.hand + step) % count)
            .find(|slot| self.forget(&listed.slots[*slot]));
        listed.hand = (freed.map_or(listed.hand + LOOKS - 1, |slot| slot) + 1) % count;
        freed.inspect(|slot| listed.unlist(*slot))
    }

    /// Makes all stripes forget a breaker, unless it remembers failures, is not closed, or is in
    /// somebody's hands: a call that runs or a handle.
    fn forget(&self, gate: &Arc<Gate>) -> bool {
        if !gate.is_blank(clock::now()) {
            return false;
        }
        let mut tables: Vec<Table<'_>> =
            self.shards.iter().map(|shard| held(shard.met.write())).collect();
        let is_it = |node: &Arc<Node>| Arc::ptr_eq(&node.gate, gate);

        // With all stripes locked nobody can come by a new reference, except from an old one.
        let nodes: Vec<_> = tables.iter().filter_map(|t| t.find(gate.hash(), is_it)).collect();
        let is_held = nodes.iter().any(|node| Arc::strong_count(node) > 1)
            || Arc::strong_count(gate) > 1 + nodes.len();
        // Once more: the last call may have failed before it let go.
        if is_held || !gate.is_blank(clock::now()) {
            return false;
        }
        for table in &mut tables {
            if let Ok(entry) = table.find_entry(gate.hash(), is_it) {
                entry.remove();
            }
        }
        true
    }
}

type Table<'s> = RwLockWriteGuard<'s, HashTable<Arc<Node>>>;

impl Listed {
    fn get(&self, key: KeyRef<'_>) -> Option<Arc<Gate>> {
        let slot = self.index.find(key.hash, |slot| self.slots[*slot].is(key))?;
        Some(self.slots[*slot].clone())
    }

    /// Puts a breaker in a slot that is unlisted or the next.
    fn put(&mut self, slot: usize, gate: Arc<Gate>) -> Arc<Gate> {
        if slot == self.slots.len() {
            self.slots.push(gate.clone());
        } else {
            self.slots[slot] = gate.clone();
        }
        let slots = &self.slots;
        self.index.insert_unique(gate.hash(), slot, |slot| slots[*slot].hash());
        gate
    }

    fn unlist(&mut self, slot: usize) {
        let hash = self.slots[slot].hash();
        if let Ok(entry) = self.index.find_entry(hash, |listed| *listed == slot) {
            entry.remove();
        }
    }
}

impl fmt::Debug for Breakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = held(self.listed.lock()).slots.len();
        f.debug_struct("Breakers").field("count", &count).finish_non_exhaustive()
    }
}
