//! The breakers that came first, found without a lock.
use crate::{gate::Gate, permit::Held, stand::Stand};
use std::sync::{Arc, OnceLock};
use tr_core::KeyRef;

/// Breakers that stay for good: their places are filled once, and never moved or emptied.
pub(crate) struct Table {
    /// At most half full, so that each search ends at an empty place.
    places: Box<[OnceLock<Place>]>,
}

/// A breaker, what it is found by, and where its calls leave their successes.
pub(crate) struct Place {
    hash: u64,
    name: Arc<str>,
    gate: Arc<Gate>,
    stand: &'static Stand,
}

impl Table {
    /// Has room for so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { places: (0..(2 * most).next_power_of_two()).map(|_| OnceLock::new()).collect() }
    }

    #[inline]
    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<&Place> {
        self.search(key)?.get()
    }

    /// Puts a breaker in, if there is none of this key. The caller sees to it that there is room.
    pub(crate) fn insert(&self, key: KeyRef<'_>, gate: Arc<Gate>) -> &Place {
        let place = self.search(key).expect("half of the places stay empty");
        place.get_or_init(|| Place::new(gate))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Gate>> {
        self.places.iter().filter_map(OnceLock::get).map(|place| &place.gate)
    }

    /// The place of this key, or the empty one where it would be.
    #[inline]
    fn search(&self, key: KeyRef<'_>) -> Option<&OnceLock<Place>> {
        let (from, mask) = (key.hash as usize, self.places.len() - 1);
        (0..self.places.len())
            .map(|step| &self.places[from.wrapping_add(step) & mask])
            .find(|place| place.get().is_none_or(|place| place.is(key)))
    }
}

impl Place {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        let (hash, name) = (gate.hash(), gate.name().clone());
        let stand = gate.stand().expect("a fixed breaker has a counter slot");
        Self { hash, name, gate, stand }
    }

    #[inline]
    fn is(&self, key: KeyRef<'_>) -> bool {
        self.hash == key.hash && key.is_named(&self.name)
    }

    #[inline]
    pub(crate) const fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// As a call holds it.
    #[inline]
    pub(crate) const fn held(&self) -> Held {
        Held::Apart(self.stand)
    }
}
