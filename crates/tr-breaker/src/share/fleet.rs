//! What the sharing task (`rounds.rs`) knows of each breaker: applies what Redis says to it, and lists what is not
//! published yet.
use super::{
    entry::Entry,
    merge::{KEEP, Merge, Offer, Record},
};
use crate::{changed::Changed, keyed::KeyedCircuit, registry::Breakers};
use std::{collections::HashMap, sync::Arc, time::Instant};
use tr_core::internal::Sharded;

/// The breakers of this process, and a record of what was shared about each.
pub(crate) struct Fleet {
    breakers: Sharded<Breakers>,
    records: HashMap<Arc<str>, Record>,
}

impl Fleet {
    pub(crate) fn new(breakers: Sharded<Breakers>) -> Self {
        Self { breakers, records: HashMap::new() }
    }

    /// Notices what breakers had decided before anything was shared.
    pub(crate) fn begin(&mut self, now: Instant) {
        for circuit in self.breakers.all() {
            self.look_at(&circuit, None, now);
        }
    }

    /// Notices what breakers have decided since.
    pub(crate) fn look(&mut self, changed: Changed, now: Instant) {
        for (name, at) in changed.at {
            // One that was evicted meanwhile was closed, and had published nothing.
            if let Some(circuit) = self.breakers.named(&name) {
                self.look_at(&circuit, Some(at), now);
            }
        }
        if changed.is_cut {
            for circuit in self.breakers.all() {
                self.look_at(&circuit, Some(now), now);
            }
        }
    }

    fn look_at(&mut self, circuit: &KeyedCircuit, since: Option<Instant>, now: Instant) {
        let view = circuit.inspect(now, |circuit, _| circuit.view(now));
        let name = circuit.name();
        let is_known = self.records.contains_key(name);
        if (is_known || !view.is_as_configured) && self.has_room(name, now) {
            record(&mut self.records, name, now).look(&view, since, now);
        }
    }

    /// Takes in what Redis says of a breaker; `false` if there is no room to remember it.
    pub(crate) fn receive(&mut self, name: &str, entry: &Entry, now: Instant) -> bool {
        if !self.has_room(name, now) {
            return false;
        }
        let record = record(&mut self.records, name, now);
        if record.judge(entry, now) == Merge::Old {
            return true;
        }
        let mut circuit = self.breakers.named(name);
        if circuit.is_none() {
            self.breakers.decide_later(name, entry.decision, now);
            // It may have been created since the lookup, without this decision.
            circuit = self.breakers.named(name);
        }
        match circuit {
            Some(circuit) => Self::merge(record, &circuit, entry, now),
            // What was pending of a breaker that is gone is pending no more.
            None => record.leave(entry, now),
        }
        true
    }

    fn merge(record: &mut Record, circuit: &KeyedCircuit, entry: &Entry, now: Instant) {
        circuit.inspect(now, |circuit, _| {
            // Nothing that it decides comes in between.
            record.look(&circuit.view(now), Some(now), now);
            match record.judge(entry, now) {
                Merge::Old => {}
                Merge::Keep => record.keep(entry, now),
                Merge::Adopt => {
                    circuit.adopt(&entry.decision, now);
                    record.adopt(entry, &circuit.view(now), now);
                }
            }
        });
    }

    /// The breakers with unpublished decisions.
    pub(crate) fn pending(&self) -> Vec<Arc<str>> {
        let pending = self.records.iter().filter(|(_, record)| record.is_pending());
        pending.map(|(name, _)| name.clone()).collect()
    }

    /// The pending publication of a breaker, if there still is one.
    pub(crate) fn offer(&mut self, name: &str, now: Instant) -> Option<Offer> {
        let record = self.records.get_mut(name)?;
        let Some(circuit) = self.breakers.named(name) else {
            record.give_up();
            return None;
        };
        let view = circuit.inspect(now, |circuit, _| circuit.view(now));
        record.look(&view, Some(now), now);
        record.offer(&view, now)
    }

    /// An offer was taken, under this epoch.
    pub(crate) fn taken(&mut self, name: &str, offer: &Offer, epoch: u64, now: Instant) {
        if let Some(record) = self.records.get_mut(name) {
            record.taken(offer, epoch, now);
        }
    }

    /// All that is known, for a Redis that may have forgotten it.
    pub(crate) fn repeats(&self, now: Instant) -> Vec<(Arc<str>, Offer)> {
        let known = self.records.iter();
        known.filter_map(|(name, record)| Some((name.clone(), record.repeat(now)?))).collect()
    }

    /// Whether this breaker is known, or may be.
    fn has_room(&mut self, name: &str, now: Instant) -> bool {
        if self.records.contains_key(name) || self.records.len() < self.breakers.capacity() {
            return true;
        }
        self.records.retain(|_, record| !record.is_over(now, KEEP));
        self.records.len() < self.breakers.capacity()
    }
}

/// What is known of a breaker, or that nothing is.
fn record<'r>(
    records: &'r mut HashMap<Arc<str>, Record>,
    name: &str,
    now: Instant,
) -> &'r mut Record {
    if !records.contains_key(name) {
        records.insert(name.into(), Record::new(now));
    }
    records.get_mut(name).expect("it was put in")
}
