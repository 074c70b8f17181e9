//! The protocol under a model checker: every order of events, up to a number of faults.
//!
//! Three callers share one key. Between any two of their steps, requests and replies get lost or
//! arrive late, callers are killed or sleep through their leases, the store evicts records,
//! operators settle, and a replica without the last writes is promoted. Only the protocol's own
//! functions change the record; the model adds the environment.
//!
//! [`laws`] has the invariants. [`bugs`] are mistakes that the laws must find, to test the laws
//! themselves.
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

/// The configuration of a model.
#[derive(Clone, Debug)]
struct Lease {
    /// Whether a second run may do harm.
    mutating: bool,
    /// The number of callers; the second uses best effort, the last may have other params.
    callers: usize,
    /// The most faults of one history.
    faults: u8,
    /// Whether the store has a replica, which may be promoted.
    replicated: bool,
    /// Whether a write waits for the replica.
    waits_for_replica: bool,
    /// Whether the store counts epochs instead of reading them from its clock.
    counted_epochs: bool,
    /// Whether the store's clock may jump.
    clock_jumps: bool,
    /// The only law to check; all if `None`.
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
        let unknown = self.mutating.then_some(laws::DUPLICATE_GETS_UNKNOWN);
        let sometimes = laws::SOMETIMES.into_iter().chain(unknown);
        always.chain(sometimes.map(|(name, law)| Property::sometimes(name, law))).collect()
    }
}
