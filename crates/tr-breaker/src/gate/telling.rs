//! Telling observers what a breaker did.
use super::{Gate, Guarded};
use crate::{
    state::Edge,
    sync::{Mutex, held},
};
use tr_core::{CallInfo, Event};

impl Gate {
    /// Tells the observers of all steps, without a lock. One thread at a time does so, that they
    /// hear them in their order; who finds another at it leaves its own steps to that one.
    pub(super) fn tell(&self) {
        while let Some((Edge { from, to }, _turn)) = self.next_edge() {
            let event = Event::Breaker { breaker: &self.name, from, to };
            let label = self.label.as_deref().unwrap_or(&self.name);
            self.hub().tell(&CallInfo::of(label), &event);
        }
    }

    fn next_edge(&self) -> Option<(Edge, Turn<'_>)> {
        let mut place = held(self.guarded.lock());
        let guarded = place.as_mut().filter(|guarded| !guarded.is_telling)?;
        let edge = guarded.machine.next_edge()?;
        guarded.is_telling = true;
        Some((edge, Turn(&self.guarded)))
    }
}

/// The turn to tell the observers; given back also when one of them panics.
struct Turn<'g>(&'g Mutex<Option<Box<Guarded>>>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(guarded) = &mut *held(self.0.lock()) {
            guarded.is_telling = false;
        }
    }
}
