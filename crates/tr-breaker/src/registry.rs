//! The breakers of one layer by key, bounded.
use crate::{
    clock,
    first::First,
    keyed::KeyedCircuit,
    observers::Observers,
    settings::{Mode, Settings},
    snapshot::{Saved, Snapshot},
    window::Epoch,
};
use hashbrown::HashTable;
use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};
use tr_policy::{BreakerOverride, KeyRef, internal::ignore_poison};

/// The breakers of one layer by key.
///
/// Those that come first stay, and are found without a lock; the others, and those of what tools
/// reach, come and go.
pub(crate) struct Breakers {
    pub(crate) settings: Arc<Settings>,
    /// For the targets of tools: whether they decide, their tools' breakers say.
    target_settings: Arc<Settings>,
    pub(crate) observers: Arc<Observers>,
    capacity: usize,
    first: First<Arc<KeyedCircuit>>,
    others: RwLock<Others>,
    /// What the keys share for which there is no room: calls pass it and do not count, so that the failures of some
    /// refuse none of the others.
    pub(crate) overflow: Arc<KeyedCircuit>,
}

#[derive(Default)]
struct Others {
    /// How many came first.
    first: usize,
    slots: Vec<Arc<KeyedCircuit>>,
    /// Where in `slots` a key's breaker is.
    index: HashTable<u32>,
    /// Where the search for one that may go continues.
    hand: usize,
    /// Restored state of breakers that have not been used since.
    restored: HashMap<String, (Saved, Epoch)>,
}

/// At most this many stay for good, and at most half of all.
const FIRST: usize = 256;

/// Breakers looked at for one that may go, before a new key goes without one.
const LOOKS: usize = 16;

/// What keys without one of their own share.
const OVERFLOW: &str = "_overflow";

/// What is known of a key that has no breaker yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed<'r> {
    /// What events call the tool.
    pub(crate) label: &'r str,
    pub(crate) change: BreakerOverride,
}

impl Breakers {
    pub(crate) fn new(settings: Settings, capacity: usize, observers: Observers) -> Self {
        let (settings, observers) = (Arc::new(settings), Arc::new(observers));
        let target_settings = match settings.of_target() {
            same if same == *settings => settings.clone(),
            other => Arc::new(other),
        };
        let key = KeyRef::new(OVERFLOW);
        let of_overflow = match settings.force_open {
            true => settings.clone(),
            false => Arc::new(Settings { mode: Mode::Disabled, ..Settings::clone(&settings) }),
        };
        let overflow = KeyedCircuit::new(key, OVERFLOW, of_overflow, observers.clone());
        Self {
            settings,
            target_settings,
            observers,
            capacity,
            first: First::new(FIRST.min(capacity / 2)),
            others: RwLock::default(),
            overflow: Arc::new(overflow),
        }
    }

    /// The breaker of this key; made if there is room.
    #[inline]
    pub(crate) fn find<'r>(
        &self,
        key: KeyRef<'_>,
        seed: impl FnOnce() -> Seed<'r>,
    ) -> Arc<KeyedCircuit> {
        match self.first(key) {
            Some(first) => first.clone(),
            None => self.find_other(key, seed),
        }
    }

    #[inline(never)]
    fn find_other<'r>(
        &self,
        key: KeyRef<'_>,
        seed: impl FnOnce() -> Seed<'r>,
    ) -> Arc<KeyedCircuit> {
        let known = ignore_poison(self.others.read()).get(key);
        known.unwrap_or_else(|| self.find_or_make(key, seed()))
    }

    /// The breaker of this key, if it is one of those that came first.
    #[inline]
    pub(crate) fn first(&self, key: KeyRef<'_>) -> Option<&Arc<KeyedCircuit>> {
        self.first.get(key.hash, |circuit| circuit.is(key))
    }

    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<Arc<KeyedCircuit>> {
        let first = self.first(key).cloned();
        first.or_else(|| ignore_poison(self.others.read()).get(key))
    }

    pub(crate) fn get_or_make(&self, key: KeyRef<'_>) -> Arc<KeyedCircuit> {
        self.find(key, || Seed { label: key.name, change: BreakerOverride::default() })
    }

    pub(crate) fn all(&self) -> Vec<Arc<KeyedCircuit>> {
        let others = ignore_poison(self.others.read());
        self.each(&others).cloned().collect()
    }

    fn each<'b>(&'b self, others: &'b Others) -> impl Iterator<Item = &'b Arc<KeyedCircuit>> {
        self.first.iter().chain(&others.slots)
    }

    /// The breakers of what this tool reaches.
    pub(crate) fn targets_of(&self, tool: &KeyedCircuit) -> Vec<Arc<KeyedCircuit>> {
        let others = ignore_poison(self.others.read());
        others.slots.iter().filter(|other| other.is_target_of(tool.name())).cloned().collect()
    }

    pub(crate) fn save(&self, unix_ms: u64) -> Snapshot {
        // At one moment, so that none is made in between.
        let (circuits, mut breakers) = {
            let others = ignore_poison(self.others.read());
            let circuits: Vec<_> = self.each(&others).cloned().collect();
            let waiting = others.restored.values().map(|(saved, _)| saved.clone());
            (circuits, waiting.collect::<Vec<_>>())
        };
        let epoch = Epoch { now: clock::now(), unix_ms };
        let circuits = circuits.iter().chain([&self.overflow]);
        breakers.extend(circuits.filter_map(|circuit| circuit.saved(epoch)));
        Snapshot { breakers }
    }

    pub(crate) fn restore(&self, snapshot: &Snapshot, unix_ms: u64) {
        let epoch = Epoch { now: clock::now(), unix_ms };
        let mut saved: HashMap<&str, &Saved> =
            snapshot.breakers.iter().map(|saved| (&*saved.name, saved)).collect();
        // Whatever is made from here on finds what waits for it.
        let circuits = {
            let mut others = ignore_poison(self.others.write());
            let circuits = self.each(&others).chain([&self.overflow]);
            let circuits: Vec<_> = circuits
                .filter_map(|circuit| Some((circuit.clone(), saved.remove(circuit.name())?)))
                .collect();
            for (name, saved) in saved {
                let is_there = others.restored.contains_key(name);
                if is_there || others.restored.len() < self.capacity {
                    others.restored.insert(name.to_owned(), (saved.clone(), epoch));
                }
            }
            circuits
        };
        for (circuit, saved) in circuits {
            circuit.restore(saved, epoch);
        }
    }

    fn find_or_make(&self, key: KeyRef<'_>, seed: Seed<'_>) -> Arc<KeyedCircuit> {
        // Held until it is there, so that concurrent calls create only one breaker for a key.
        let mut others = ignore_poison(self.others.write());
        if let Some(known) = self.first(key).cloned().or_else(|| others.get(key)) {
            return known;
        }
        // There may be any number of targets, most of them soon forgotten.
        let stays = !key.is_target() && others.first < FIRST.min(self.capacity / 2);
        let room = if stays { None } else { others.room(self.capacity) };
        if !stays && room.is_none() {
            return self.overflow.clone();
        }
        let settings = if key.is_target() { &self.target_settings } else { &self.settings };
        let mut change = seed.change;
        if key.is_target() {
            change.order = None;
        }
        let settings = match change {
            change if change == BreakerOverride::default() => settings.clone(),
            change => Arc::new(settings.with(change)),
        };
        let made = KeyedCircuit::new(key, seed.label, settings, self.observers.clone());
        let made = Arc::new(made);
        match room {
            Some(slot) => others.put(slot, made.clone()),
            None => {
                others.first += 1;
                self.first.add(key.hash, made.clone());
            }
        }
        let restored = others.restored.remove(made.name());
        // Observers may look up breakers when they are notified.
        drop(others);
        if let Some((saved, epoch)) = restored {
            made.restore(&saved, epoch);
        }
        made
    }
}

impl Others {
    fn get(&self, key: KeyRef<'_>) -> Option<Arc<KeyedCircuit>> {
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
        let circuit = &self.slots[slot];
        // In this order: the last call may fail before it lets go.
        Arc::strong_count(circuit) == 1 && circuit.is_blank(clock::now())
    }

    /// Puts a breaker in a slot that is unlisted or the next.
    fn put(&mut self, slot: usize, circuit: Arc<KeyedCircuit>) {
        let hash = circuit.hash;
        if slot == self.slots.len() {
            self.slots.push(circuit);
        } else {
            self.slots[slot] = circuit;
        }
        let slots = &self.slots;
        let slot = u32::try_from(slot).expect("capacities are below");
        self.index.insert_unique(hash, slot, |slot| slots[*slot as usize].hash);
    }

    fn unlist(&mut self, slot: usize) {
        let hash = self.slots[slot].hash;
        if let Ok(entry) = self.index.find_entry(hash, |listed| *listed as usize == slot) {
            entry.remove();
        }
    }
}

tr_policy::debug_parts! { Breakers, |it| count = it.all().len() }
