//! Breakers by their names, as other processes know them.
use super::Breakers;
use crate::{gate::Gate, share::Told, sync::held};
use std::sync::Arc;
use tr_core::KeyRef;

impl Breakers {
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The breaker of this name, whatever its key is.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Gate>> {
        self.get(KeyRef::new(name)).or_else(|| {
            let others = held(self.others.read());
            let mut gates = self.first.iter().chain(&others.slots);
            gates.find(|gate| **gate.name() == *name).cloned()
        })
    }

    /// Leaves word for a breaker that is still to be made, or nothing.
    pub(crate) fn leave(&self, name: &str, told: Option<Told>) {
        let mut others = held(self.others.write());
        others.told.remove(name);
        if let Some(told) = told.filter(|_| others.told.len() < self.capacity) {
            others.told.insert(name.into(), told);
        }
    }
}
