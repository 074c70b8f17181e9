//! The breakers of one layer by key, bounded.
#[cfg(feature = "redis")]
mod sharing;

use crate::{
    clock,
    epoch::Epoch,
    gate::Gate,
    ground::Ground,
    hub::Hub,
    lane::Lanes,
    permit::Held,
    settings::Settings,
    snapshot::{Saved, Snapshot},
    sync::held,
    table::{Place, Table},
};
use hashbrown::HashTable;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, RwLock, RwLockWriteGuard},
};
use tr_core::{KeyRef, manifest::BreakerOverride};

/// The breakers of one layer by key.
///
/// Those that come first stay, and are found without a lock; the others, and those of what tools
/// reach, come and go.
pub(crate) struct Breakers {
    ground: Arc<Ground>,
    /// The same for the targets of tools: whether they decide, their tools' breakers say.
    target_ground: Arc<Ground>,
    capacity: usize,
    first: Table,
    others: RwLock<Others>,
    /// What the keys share for which there is no room.
    overflow: Place,
}

#[derive(Default)]
struct Others {
    /// How many came first.
    first: usize,
    slots: Vec<Arc<Gate>>,
    /// Where in `slots` a key's breaker is.
    index: HashTable<u32>,
    /// Where the search for one that may go continues.
    hand: usize,
    /// Restored state of breakers that have not been used since.
    restored: HashMap<String, (Saved, Epoch)>,
    /// Decisions of other processes about breakers that this one has not used.
    #[cfg(feature = "redis")]
    told: HashMap<Box<str>, crate::share::Told>,
}

/// A key's breaker.
pub(crate) enum Found<'b> {
    First(&'b Place),
    Other(Arc<Gate>),
}

/// At most this many stay for good, and at most half of all.
const FIRST: usize = 256;

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
        let ground = Arc::new(Ground::new(settings, Arc::new(hub)));
        let target_ground = match ground.settings.of_target() {
            settings if settings == *ground.settings => ground.clone(),
            settings => Arc::new(ground.with(settings)),
        };
        let (key, lanes) = (KeyRef::new(OVERFLOW), Lanes::striped(&ground.settings));
        let overflow = Gate::shared(key, OVERFLOW, ground.clone(), lanes);
        Self {
            ground,
            target_ground,
            capacity,
            first: Table::new(FIRST.min(capacity / 2)),
            others: RwLock::default(),
            overflow: Place::new(overflow),
        }
    }

    /// The breaker of this key, if it is one of those that came first.
    #[inline]
    pub(crate) fn first(&self, key: KeyRef<'_>) -> Option<&Place> {
        self.first.get(key)
    }

    /// The breaker of this key; made if there is room.
    pub(crate) fn find<'r>(&self, key: KeyRef<'_>, seed: impl FnOnce() -> Seed<'r>) -> Found<'_> {
        match self.first.get(key) {
            Some(place) => Found::First(place),
            None => self.find_other(key, seed),
        }
    }

    fn find_other<'r>(&self, key: KeyRef<'_>, seed: impl FnOnce() -> Seed<'r>) -> Found<'_> {
        let known = held(self.others.read()).get(key);
        match known {
            Some(gate) => Found::Other(gate),
            None => self.find_or_make(key, seed()),
        }
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.ground.hub
    }

    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<Arc<Gate>> {
        let first = self.first.get(key).map(|place| place.gate().clone());
        first.or_else(|| held(self.others.read()).get(key))
    }

    pub(crate) fn get_or_make(&self, key: KeyRef<'_>) -> Arc<Gate> {
        let seed = || Seed { label: key.name, change: BreakerOverride::default() };
        self.find(key, seed).into_gate()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Gate>> {
        let others = held(self.others.read());
        self.first.iter().chain(&others.slots).cloned().collect()
    }

    /// The breakers of what this tool reaches.
    pub(crate) fn targets_of(&self, tool: &Gate) -> Vec<Arc<Gate>> {
        let others = held(self.others.read());
        others.slots.iter().filter(|gate| gate.is_target_of(tool.name())).cloned().collect()
    }

    pub(crate) const fn overflow(&self) -> &Arc<Gate> {
        self.overflow.gate()
    }

    pub(crate) fn save(&self, unix_ms: u64) -> Snapshot {
        // At one moment, so that none is made in between.
        let (gates, mut breakers) = {
            let others = held(self.others.read());
            let gates: Vec<_> = self.first.iter().chain(&others.slots).cloned().collect();
            let waiting = others.restored.values().map(|(saved, _)| saved.clone());
            (gates, waiting.collect::<Vec<_>>())
        };
        let epoch = Epoch { now: clock::now(), unix_ms };
        let known = gates.iter().chain([self.overflow()]).filter_map(|gate| gate.saved(epoch));
        breakers.extend(known);
        Snapshot { breakers }
    }

    pub(crate) fn restore(&self, snapshot: &Snapshot, unix_ms: u64) {
        let epoch = Epoch { now: clock::now(), unix_ms };
        let mut saved: HashMap<&str, &Saved> =
            snapshot.breakers.iter().map(|saved| (&*saved.name, saved)).collect();
        // Whatever is made from here on finds what waits for it.
        let gates = {
            let mut others = held(self.others.write());
            let gates = self.first.iter().chain(&others.slots).chain([self.overflow()]);
            let gates: Vec<_> = gates
                .filter_map(|gate| Some((gate.clone(), saved.remove(&**gate.name())?)))
                .collect();
            for (name, saved) in saved {
                let is_there = others.restored.contains_key(name);
                if is_there || others.restored.len() < self.capacity {
                    others.restored.insert(name.to_owned(), (saved.clone(), epoch));
                }
            }
            gates
        };
        for (gate, saved) in gates {
            gate.restore(saved, epoch);
        }
    }

    /// Restores the known state of a new breaker.
    fn made<'b>(&'b self, made: Found<'b>, others: RwLockWriteGuard<'_, Others>) -> Found<'b> {
        let mut others = others;
        let restored = match others.restored.is_empty() {
            true => None,
            false => others.restored.remove(&**made.gate().name()),
        };
        #[cfg(feature = "redis")]
        let told = others.told.remove(&**made.gate().name());
        // Observers may look up breakers when they are notified.
        drop(others);
        if let Some((saved, epoch)) = restored {
            made.gate().restore(&saved, epoch);
        }
        #[cfg(feature = "redis")]
        if let Some(told) = told {
            told.tell(made.gate());
        }
        made
    }

    fn find_or_make(&self, key: KeyRef<'_>, seed: Seed<'_>) -> Found<'_> {
        // Held until it is there, so that concurrent calls create only one breaker for a key.
        let mut others = held(self.others.write());
        if let Some(place) = self.first.get(key) {
            return Found::First(place);
        }
        if let Some(gate) = others.get(key) {
            return Found::Other(gate);
        }
        let common = if key.is_target() { &self.target_ground } else { &self.ground };
        let ground = || match seed.change {
            change if change == BreakerOverride::default() => common.clone(),
            change => Arc::new(common.with(common.settings.with(change))),
        };
        let gate = |lanes: fn(&Settings) -> Lanes| {
            let ground = ground();
            let lanes = lanes(&ground.settings);
            Gate::shared(key, seed.label, ground, lanes)
        };
        // There may be any number of targets, most of them soon forgotten.
        if !key.is_target() && others.first < FIRST.min(self.capacity / 2) {
            others.first += 1;
            let first = self.first.insert(key, gate(Lanes::striped));
            return self.made(Found::First(first), others);
        }
        let Some(slot) = others.room(self.capacity) else {
            return Found::First(&self.overflow);
        };
        let other = others.put(slot, gate(Lanes::one));
        self.made(Found::Other(other), others)
    }
}

impl Found<'_> {
    pub(crate) const fn gate(&self) -> &Arc<Gate> {
        match self {
            Self::First(place) => place.gate(),
            Self::Other(gate) => gate,
        }
    }

    /// As a call holds it.
    pub(crate) fn into_held(self) -> Held {
        match self {
            Self::First(place) => place.held(),
            Self::Other(gate) => Held::Shared(gate),
        }
    }

    fn into_gate(self) -> Arc<Gate> {
        match self {
            Self::First(place) => place.gate().clone(),
            Self::Other(gate) => gate,
        }
    }
}

impl Others {
    fn get(&self, key: KeyRef<'_>) -> Option<Arc<Gate>> {
        let slot = self.index.find(key.hash, |slot| self.slots[*slot as usize].is(key))?;
        Some(self.slots[*slot as usize].clone())
    }

    /// A slot that is free, or freed.
    fn room(&mut self, capacity: usize) -> Option<usize> {
        let count = self.slots.len();
        if self.first + count < capacity {
            return Some(count);
        }
        let looks = (0..count.min(LOOKS)).map(|step| (self.hand + step) % count);
        let (mut hand, mut freed) = (self.hand, None);
        for slot in looks {
            hand = (slot + 1) % count;
            if self.may_go(slot) {
                freed = Some(slot);
                break;
            }
        }
        self.hand = hand;
        freed.inspect(|slot| self.unlist(*slot))
    }

    /// Whether a new breaker would decide the same, and no running call and no handle uses this one.
    /// Called only under the write lock, so no call can take it meanwhile.
    fn may_go(&self, slot: usize) -> bool {
        let gate = &self.slots[slot];
        // In this order: the last call may fail before it lets go.
        Arc::strong_count(gate) == 1 && gate.is_blank(clock::now())
    }

    /// Puts a breaker in a slot that is unlisted or the next.
    fn put(&mut self, slot: usize, gate: Arc<Gate>) -> Arc<Gate> {
        if slot == self.slots.len() {
            self.slots.push(gate.clone());
        } else {
            self.slots[slot] = gate.clone();
        }
        let slots = &self.slots;
        let place = u32::try_from(slot).expect("capacities are below");
        self.index.insert_unique(gate.hash(), place, |slot| slots[*slot as usize].hash());
        gate
    }

    fn unlist(&mut self, slot: usize) {
        let hash = self.slots[slot].hash();
        if let Ok(entry) = self.index.find_entry(hash, |listed| *listed as usize == slot) {
            entry.remove();
        }
    }
}

impl fmt::Debug for Breakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = held(self.others.read());
        let count = others.first + others.slots.len();
        f.debug_struct("Breakers").field("count", &count).finish_non_exhaustive()
    }
}
