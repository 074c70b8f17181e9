//! Ids of requests that came without one.
use std::{
    hash::{BuildHasher as _, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};
use tr_core::{WallClock, debug_parts};
use tr_wire::uuid_v7;

/// Makes UUIDs of version 7.
pub(super) struct Ids {
    pub(super) clock: Box<dyn WallClock>,
    /// Its keys are random, so hashes of a counter are.
    random: RandomState,
    count: AtomicU64,
}

impl Ids {
    pub(super) fn new(clock: impl WallClock + 'static) -> Self {
        Self { clock: Box::new(clock), random: RandomState::new(), count: AtomicU64::new(0) }
    }

    pub(super) fn next(&self) -> Box<str> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let [low, high] = [0_u8, 1].map(|half| self.random.hash_one((count, half)).to_le_bytes());
        let mut random = [0; 10];
        random[..8].copy_from_slice(&low);
        random[8..].copy_from_slice(&high[..2]);
        uuid_v7(self.clock.unix_ms(), random)
    }
}

debug_parts! { Ids, |it| clock = it.clock }
