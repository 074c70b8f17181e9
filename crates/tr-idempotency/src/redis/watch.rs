//! The watchers of records.
use redis::{PushInfo, PushKind, Value};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tokio::sync::Notify;
use tr_core::internal::lock;

/// The watchers of this process, by channel.
#[derive(Default)]
pub(super) struct Watchers {
    channels: Mutex<HashMap<Vec<u8>, Channel>>,
    /// Counts lost connections, whose subscriptions are lost with them.
    losses: AtomicU64,
}

#[derive(Default)]
struct Channel {
    watchers: usize,
    changed: Arc<Notify>,
}

impl Watchers {
    /// Joins the watchers of this channel, and returns what wakes them.
    pub(super) fn join(&self, channel: &[u8]) -> Arc<Notify> {
        let mut channels = lock(&self.channels);
        let place = channels.entry(channel.to_vec()).or_default();
        place.watchers += 1;
        place.changed.clone()
    }

    /// Leaves the channel; returns whether it was the last watcher.
    pub(super) fn leave(&self, channel: &[u8]) -> bool {
        let mut channels = lock(&self.channels);
        let Some(place) = channels.get_mut(channel) else { return false };
        place.watchers -= 1;
        let last = place.watchers == 0;
        if last {
            channels.remove(channel);
        }
        last
    }

    /// Handles a push message.
    pub(super) fn heed(&self, push: &PushInfo) {
        if let (PushKind::Message, [Value::BulkString(channel), ..]) = (&push.kind, &push.data[..])
        {
            self.wake(channel);
        }
    }

    /// The connection is lost: all watchers read their records and subscribe again.
    pub(super) fn lost(&self) {
        self.losses.fetch_add(1, Relaxed);
        for channel in lock(&self.channels).values() {
            channel.changed.notify_waiters();
        }
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Relaxed)
    }

    /// Wakes the watchers of this channel.
    pub(super) fn wake(&self, channel: &[u8]) {
        if let Some(place) = lock(&self.channels).get(channel) {
            place.changed.notify_waiters();
        }
    }

    pub(super) fn has(&self, channel: &[u8]) -> bool {
        lock(&self.channels).contains_key(channel)
    }
}
