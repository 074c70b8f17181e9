//! The protocol under a model checker: every order of events, up to a number of faults.
//!
//! Three callers share one key. Between any two of their steps, requests and replies get lost or
//! arrive late, callers are killed or sleep through their leases, the store evicts records,
//! operators settle, and a replica without the last writes is promoted. The record changes by the
//! protocol's own functions alone; what the model adds is the world around it.
//!
//! [`laws`] says what must hold. [`bugs`] are mistakes that the laws must find: a law that finds
//! nothing proves nothing.
mod action;
mod bugs;
mod laws;
mod level;
mod moves;
mod tests;
mod world;

use action::Action;
use bugs::Bug;
use laws::Law;
use stateright::{Model, Property};
use world::World;

/// What is modelled.
#[derive(Clone, Debug)]
struct Lease {
    /// A second run may do harm.
    mutating: bool,
    /// How many callers ask; the second asks for best effort, the last may have other params.
    callers: usize,
    /// How many faults one history has.
    faults: u8,
    /// The store has a replica, which may be promoted.
    replicated: bool,
    /// Who writes waits until the replica has it.
    waits_for_replica: bool,
    /// Epochs are counted by the store, not read from its clock.
    counted_epochs: bool,
    /// The store's clock may jump.
    clock_jumps: bool,
    /// The only law to look at; all, if there is none.
    law: Option<&'static str>,
    bug: Option<Bug>,
}

impl Model for Lease {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.faults, self.replicated)]
    }

    fn actions(&self, _: &World, actions: &mut Vec<Action>) {
        Action::all(self.callers, actions);
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        action.take(self, last.clone()).filter(|next| next != last)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let is_meant = |(name, _): &Law| self.law.is_none_or(|law| law == *name);
        let always = laws::ALWAYS.into_iter().filter(is_meant);
        let always = always.map(|(name, law)| Property::always(name, law));
        if self.law.is_some() {
            return always.collect();
        }
        let unknown = self.mutating.then_some(laws::TOLD_UNKNOWN);
        let sometimes = laws::SOMETIMES.into_iter().chain(unknown);
        always.chain(sometimes.map(|(name, law)| Property::sometimes(name, law))).collect()
    }
}
