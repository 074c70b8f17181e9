//! The client of a layer's store: its settings, and how its records are written.
use super::{Settings, gate::Gate, prober::Prober};
use crate::{
    codec::{Found, body::Format},
    local::notes::RequestNote,
    protocol::Token,
    record::DedupeRecord,
    store::Stored,
};
use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tr_core::Observer;

/// A layer's store and its settings.
pub(crate) struct Client<V> {
    pub(crate) gate: Arc<Gate>,
    pub(crate) format: Format<V>,
    pub(crate) settings: Settings,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(super) probe: Option<Arc<Prober<V>>>,
    owners: AtomicU64,
}

impl<V> Client<V> {
    pub(crate) fn new(
        gate: Arc<Gate>,
        format: Format<V>,
        settings: Settings,
        observer: Option<Arc<dyn Observer>>,
        probe: Option<Arc<Prober<V>>>,
    ) -> Arc<Self> {
        let owners = RandomState::new().hash_one("owner").into();
        Arc::new(Self { gate, format, settings, observer, probe, owners })
    }

    /// An owner id: unique, and never [`BY_HAND`](Token::BY_HAND).
    pub(crate) fn owner(&self) -> u64 {
        loop {
            let owner = mix(self.owners.fetch_add(1, Relaxed));
            if owner != Token::BY_HAND {
                return owner;
            }
        }
    }

    /// The record as operators see it. Parts that cannot be read are left empty.
    pub(crate) fn shown(&self, stored: &Stored) -> DedupeRecord {
        let record = &stored.record;
        let mut note = RequestNote::read(stored, &self.format.frames).unwrap_or_default();
        note.tool = (&*stored.tool).into();
        let found = Found::body(&stored.key, record);
        let history = self.format.history(&found, &record.state);
        let (earlier, failure, settled) = history.unwrap_or_default();
        DedupeRecord::new(&stored.key, record, &note, &earlier, failure.as_deref(), |at| at)
            .settled(settled)
    }
}

/// Mixes consecutive numbers; a bijection.
const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ (number >> 29)
}

tr_core::debug_parts! { Client<V>, |it| gate = it.gate, settings = it.settings, probe = it.probe }
