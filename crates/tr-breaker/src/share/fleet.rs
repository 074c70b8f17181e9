//! The breakers of this process, as part of those that share.
use super::{
    decision::Entry,
    merge::{Merge, Offer, Record},
    news::Touched,
    told::Told,
};
use crate::{gate::Gate, registry::Breakers};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tr_core::Sharded;

/// The breakers of this process, as part of those that share.
pub(crate) struct Fleet {
    breakers: Sharded<Breakers>,
    records: HashMap<Arc<str>, Record>,
}

/// How long a past decision is remembered, here and in Redis, so that an old one is not taken for a new one.
pub(crate) const KEEP: Duration = Duration::from_secs(10 * 60);

impl Fleet {
    pub(crate) fn new(breakers: Sharded<Breakers>) -> Self {
        Self { breakers, records: HashMap::new() }
    }

    /// Notices what breakers had decided before anything was shared.
    pub(crate) fn begin(&mut self, now: Instant) {
        for gate in self.breakers.all() {
            self.look_at(gate.name(), &gate, None, now);
        }
    }

    /// Notices what breakers have decided since.
    pub(crate) fn look(&mut self, touched: Touched, now: Instant) {
        for (name, at) in touched.at {
            // One that was evicted meanwhile was closed, and had published nothing.
            if let Some(gate) = self.breakers.named(&name) {
                self.look_at(&name, &gate, Some(at), now);
            }
        }
        if touched.is_cut {
            for gate in self.breakers.all() {
                self.look_at(gate.name(), &gate, Some(now), now);
            }
        }
    }

    fn look_at(&mut self, name: &Arc<str>, gate: &Gate, since: Option<Instant>, now: Instant) {
        let view = gate.inspect(now, |machine, _| machine.view(now));
        let is_known = self.records.contains_key(name);
        if (is_known || !view.is_as_configured) && self.has_room(name, now) {
            let record = self.records.entry(name.clone()).or_insert_with(|| Record::new(now));
            record.look(&view, since, now);
        }
    }

    /// Takes in what Redis says of a breaker; `false` if there is no room to remember it.
    pub(crate) fn receive(&mut self, name: &str, entry: &Entry, now: Instant) -> bool {
        if !self.has_room(name, now) {
            return false;
        }
        if !self.records.contains_key(name) {
            self.records.insert(name.into(), Record::new(now));
        }
        let record = self.records.get_mut(name).expect("it was put in");
        if record.judge(entry, now) == Merge::Old {
            return true;
        }
        let mut gate = self.breakers.named(name);
        if gate.is_none() {
            self.breakers.leave(name, Told::new(entry.decision, now));
            // It may have been created since the lookup, without this decision.
            gate = self.breakers.named(name);
        }
        match gate {
            Some(gate) => Self::merge(record, &gate, entry, now),
            // What was pending of a breaker that is gone is pending no more.
            None => record.leave(entry, now),
        }
        true
    }

    fn merge(record: &mut Record, gate: &Gate, entry: &Entry, now: Instant) {
        gate.inspect(now, |machine, _| {
            // Nothing that it decides comes in between.
            record.look(&machine.view(now), Some(now), now);
            match record.judge(entry, now) {
                Merge::Old => {}
                Merge::Keep => record.keep(entry, now),
                Merge::Adopt => {
                    machine.adopt(&entry.decision, now);
                    record.adopt(entry, &machine.view(now), now);
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
        let Some(gate) = self.breakers.named(name) else {
            record.give_up();
            return None;
        };
        let view = gate.inspect(now, |machine, _| machine.view(now));
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
