//! The breakers that came first, found without a lock.
use crate::{
    gate::Gate,
    permit::{Held, Node},
    sync::STRIPES,
};
use std::{
    array,
    sync::{Arc, OnceLock},
};
use tr_core::KeyRef;

/// Breakers that stay for good: their places are filled once, and never moved or emptied.
pub(crate) struct Table {
    /// At most half full, so that each search ends at an empty place.
    places: Box<[OnceLock<Box<Place>>]>,
}

/// A breaker, and how each stripe of threads holds it: by a reference count of its own.
pub(crate) struct Place {
    gate: Arc<Gate>,
    nodes: [OnceLock<Arc<Node>>; STRIPES],
}

impl Table {
    /// Has room for so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { places: (0..(2 * most).next_power_of_two()).map(|_| OnceLock::new()).collect() }
    }

    #[inline]
    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<&Place> {
        self.search(key)?.get().map(|place| &**place)
    }

    /// Puts a breaker in, if there is none of this key. The caller sees to it that there is room.
    pub(crate) fn insert(&self, key: KeyRef<'_>, gate: Arc<Gate>) -> &Place {
        let place = self.search(key).expect("half of the places stay empty");
        place.get_or_init(|| Box::new(Place::new(gate)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Gate>> {
        self.places.iter().filter_map(OnceLock::get).map(|place| &place.gate)
    }

    /// The place of this key, or the empty one where it would be.
    #[inline]
    fn search(&self, key: KeyRef<'_>) -> Option<&OnceLock<Box<Place>>> {
        let from = key.hash as usize;
        (0..self.places.len())
            .map(|step| &self.places[from.wrapping_add(step) & (self.places.len() - 1)])
            .find(|place| place.get().is_none_or(|place| place.gate.is(key)))
    }
}

impl Place {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        Self { gate, nodes: array::from_fn(|_| OnceLock::new()) }
    }

    #[inline]
    pub(crate) const fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// As threads of this stripe hold it.
    #[inline]
    pub(crate) fn held(&self, stripe: usize) -> Held {
        let node = || Arc::new(Node { gate: self.gate.clone(), stripe });
        Held::Apart(self.nodes[stripe].get_or_init(node).clone())
    }
}
