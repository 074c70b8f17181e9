//! The connections of the store, and what it watches through them.
use super::{
    check::{self, Accepted},
    fault,
    link::Link,
    reply::unexpected_reply,
};
use crate::store::{Seen, StoreError};
use redis::Value;
use std::{mem, pin::pin, sync::Arc, time::Duration};
use tokio::{runtime::Handle, sync::Notify, time::timeout};
use tr_core::canonical::Key;

/// How often a watcher also reads the record.
const LOOK: Duration = Duration::from_secs(1);

/// The same while the server is unreachable.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Records in Redis. A clone shares the connection.
#[derive(Clone)]
pub struct Redis(pub(super) Arc<Inner>);

pub(super) struct Inner {
    /// For changes of records.
    pub(super) changes: Arc<Link>,
    /// For everything else; the same connection if writes do not wait for replicas.
    pub(super) looks: Arc<Link>,
    pub(super) prefix: String,
    pub(super) accepted: Accepted,
}

impl Redis {
    /// The key of a record on the server, and the channel on which its changes are published. The
    /// part in braces is the hash tag in a cluster.
    pub(super) fn name(&self, key: &Key) -> Vec<u8> {
        format!("{}{{{key}}}", self.0.prefix).into_bytes()
    }

    /// The key of the store's mark.
    pub(super) fn mark_name(&self) -> Vec<u8> {
        format!("{}mark", self.0.prefix).into_bytes()
    }

    /// The pattern of keys with this prefix.
    pub(super) fn pattern(&self, beginning: &str) -> String {
        format!("{}{{{beginning}*}}", self.0.prefix)
    }

    pub(super) fn key_of(&self, name: &[u8]) -> Option<Key> {
        let name = name.strip_prefix(self.0.prefix.as_bytes())?;
        let key = name.strip_prefix(b"{")?.strip_suffix(b"}")?;
        str::from_utf8(key).ok()?.parse().ok()
    }

    /// Subscribe, then read, then wait, so that no change is missed.
    pub(super) async fn watch_record(&self, key: &Key, seen: Seen) -> Result<(), StoreError> {
        let (link, channel) = (self.0.looks.clone(), self.name(key));
        let changed = link.watchers.join(&channel);
        let watching = Watching { link, channel, changed };
        let mut subscribed = None;
        loop {
            let mut changed = pin!(watching.changed.notified());
            changed.as_mut().enable();
            let losses = self.0.looks.watchers.losses();
            let mut ready = Ok(());
            if subscribed != Some(losses) {
                ready = self.0.looks.subscribe(&watching.channel).await;
            }
            let looked = match ready {
                Ok(()) => {
                    subscribed = Some(losses);
                    self.glance(key).await
                }
                Err(error) => Err(fault::store_error(error)),
            };
            let pause = match looked {
                Ok(now) if now != Some(seen) => return Ok(()),
                Ok(_) => LOOK,
                Err(error) if error.is_transient() => LOOK_AGAIN,
                Err(error) => return Err(error),
            };
            let is_told = timeout(pause, changed).await.is_ok();
            if is_told && self.0.looks.watchers.losses() == losses {
                return Ok(()); // The caller claims again.
            }
        }
    }

    pub(super) async fn check_server(&self) -> Result<Vec<String>, StoreError> {
        let info = self.0.looks.send(redis::cmd("INFO")).await.map_err(fault::store_error)?;
        let info = match info {
            Value::BulkString(text) => String::from_utf8_lossy(&text).into_owned(),
            Value::VerbatimString { text, .. } => text,
            other => return Err(unexpected_reply(&other)),
        };
        check::check(&info, self.0.changes.durability, self.0.accepted).map_err(StoreError::refused)
    }
}

/// A subscription that ends with its last watcher.
struct Watching {
    link: Arc<Link>,
    channel: Vec<u8>,
    changed: Arc<Notify>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        if !self.link.watchers.leave(&self.channel) {
            return;
        }
        // Without a runtime the subscription ends with the connection.
        let Ok(runtime) = Handle::try_current() else { return };
        let (link, channel) = (self.link.clone(), mem::take(&mut self.channel));
        runtime.spawn(async move {
            let _ = link.unsubscribe(&channel).await;
            // A new watcher may have subscribed meanwhile, and lost its subscription.
            if link.watchers.has(&channel) {
                let _ = link.subscribe(&channel).await;
                link.watchers.wake(&channel);
            }
        });
    }
}

tr_core::debug_parts! { Redis, |it| prefix = it.0.prefix, durability = it.0.changes.durability }
