//! Records in Redis, shared by processes on several machines.
//!
//! # When to use
//!
//! Where several machines share records. On one machine a SQLite file needs no server.
//!
//! # Example
//!
//! ```no_run
//! use std::num::NonZeroU8;
//! use tr_idempotency::{IdempotencyLayer, redis::{Durability, Redis}};
//!
//! # async fn f() -> Result<(), tr_core::BoxError> {
//! let store = Redis::builder("redis://localhost:6379")
//!     .durability(Durability::wait_for(NonZeroU8::MIN))
//!     .connect()
//!     .await?;
//! let layer = IdempotencyLayer::builder().store(store).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! `rediss://` needs the feature `redis-tls`: the server's certificate has to be signed by an
//! authority that the system trusts, or by one given to `Builder::tls_roots`, and to name the
//! address's host. This check cannot be disabled.
//!
//! # Guarantees
//!
//! - Each operation is one script, one round trip, and atomic. Times are the server's.
//! - A record's key lives as long as the record. A lease that ends leaves `unknown`, not nothing.
//! - Epochs are the server's microseconds, raised where the key has a higher one already, so they
//!   grow past deleted records, and past a failover as far as the servers' clocks agree.
//! - A reply that takes more than 500 ms ends the connection; the next request opens another.
//!   Sending the same request again is safe and returns its result.
//! - With [`sentinels`](Builder::sentinels), the store asks them for the primary at the start, when
//!   the connection breaks, and when the server is a replica or too few replicas confirmed a write.
//! - A watcher of another process's call subscribes to its key, on a shared connection, and also
//!   reads the record once a second. Ten thousand waiters in a process are one watcher.
//!
//! # Requirements for the server
//!
//! [`connect`](Builder::connect) refuses a server that may evict a call in flight
//! (`maxmemory-policy` other than `noeviction`), is older than 7.0, is a replica or a part of a
//! cluster. [`check`](crate::store::RecordStore::check) warns of what it cannot rule out.
//!
//! **A call whose record the server loses may run twice.** A restart without `appendonly yes`,
//! `FLUSHALL`, or a failover to a replica that lacks the last writes loses records.
//! [`Durability::Wait`] prevents the last of these. The claim's epoch, as a fencing token, lets the
//! tool's target refuse the older run once the newer has written; it does not prevent the second
//! run.
//!
//! # Errors
//!
//! | the server, or the way to it | [`StoreErrorKind`](crate::store::StoreErrorKind) |
//! |---|---|
//! | refuses the connection; is loading, a replica, busy; sentinels that know no primary; connecting or the TLS handshake fails | `Unreachable`: nothing has changed |
//! | does not reply in time; breaks the connection; too few replicas confirm the write | `Uncertain` |
//! | is out of memory | a claim is [`Full`](crate::store::Claimed::Full), an end is still written |
//! | wrong password, no permission, a disk that it cannot write, a part of a cluster | `Refused` |
//! | another value under the key, or a newer layout | `Unreadable` |
mod builder;
mod check;
mod fault;
mod layout;
mod link;
mod many;
mod script;
mod sentinels;
mod table;
mod tls;
mod watch;

pub use self::builder::Builder;

use self::{check::Accepted, link::Link, watch::Watch};
use crate::{
    protocol::{Millis, Token},
    store::{
        ClaimRequest, Claimed, End, Listing, Query, RecordStore, Seen, StoreError, StoreFuture,
        Stored,
    },
};
use redis::Value;
use std::{fmt, num::NonZeroU8, pin::pin, sync::Arc, time::Duration};
use tokio::{runtime::Handle, time::timeout};
use tr_core::canonical::Key;

/// How often a watcher also reads the record.
const LOOK: Duration = Duration::from_secs(1);

/// The same while the server is unreachable.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How long to wait for replicas by default.
const WITHIN: Duration = Duration::from_millis(250);

/// Records in Redis. A clone shares the connection.
#[derive(Clone)]
pub struct Redis(Arc<Inner>);

struct Inner {
    /// For changes of records.
    changes: Arc<Link>,
    /// For everything else; the same connection if writes do not wait for replicas.
    looks: Arc<Link>,
    prefix: String,
    accepted: Accepted,
}

/// How far a claim, a renewal and an end are replicated before they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Only on the primary. A failover may lose it.
    #[default]
    Local,
    /// On this many replicas. If they take longer, the operation fails as
    /// [`Uncertain`](crate::store::StoreErrorKind::Uncertain): a mutating call is not run.
    ///
    /// A failover then loses nothing if one of these replicas is promoted. With one replica, wait
    /// for it. With two, waiting for one is enough if the replica with more writes is promoted, as
    /// sentinels do if they reach it, and the former primary does not return before the other
    /// replica has left it. Waiting for both is always enough, and refuses mutating calls while one
    /// of them is away.
    Wait {
        /// How many replicas.
        replicas: NonZeroU8,
        /// How long to wait for them.
        within: Duration,
    },
}

impl Durability {
    /// Waits for this many replicas, for 250 ms at most.
    #[must_use]
    pub const fn wait_for(replicas: NonZeroU8) -> Self {
        Self::Wait { replicas, within: WITHIN }
    }

    const fn waits(self) -> bool {
        matches!(self, Self::Wait { .. })
    }
}

impl Redis {
    /// Connects to the server at this address (`redis://user:password@host:port/database`) with the
    /// default settings, and checks it. [`builder`](Self::builder) has the settings.
    ///
    /// # Errors
    /// See [`Builder::connect`].
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and a timer.
    pub async fn connect(address: impl Into<String>) -> Result<Self, StoreError> {
        Self::builder(address).connect().await
    }

    /// Starts with the defaults: keys under `tr:calls:`, replies within 500 ms, no wait for
    /// replicas.
    pub fn builder(address: impl Into<String>) -> Builder {
        Builder::new(address.into())
    }

    fn changes(&self) -> &Link {
        &self.0.changes
    }

    fn looks(&self) -> &Link {
        &self.0.looks
    }

    /// The key of a record on the server, and the channel on which its changes are published. The
    /// part in braces is the hash tag in a cluster.
    fn name(&self, key: &Key) -> Vec<u8> {
        format!("{}{{{key}}}", self.0.prefix).into_bytes()
    }

    /// The pattern of keys with this prefix.
    fn pattern(&self, beginning: &str) -> String {
        format!("{}{{{beginning}*}}", self.0.prefix)
    }

    fn key_of(&self, name: &[u8]) -> Option<Key> {
        let name = name.strip_prefix(self.0.prefix.as_bytes())?;
        let key = name.strip_prefix(b"{")?.strip_suffix(b"}")?;
        str::from_utf8(key).ok()?.parse().ok()
    }

    /// Subscribe, then read, then wait, so that no change is missed.
    async fn do_watch(&self, key: &Key, seen: Seen) -> Result<(), StoreError> {
        let watching = Watching::new(&self.0.looks, &self.name(key));
        let mut subscribed = None;
        loop {
            let mut changed = pin!(watching.watch.changed.notified());
            changed.as_mut().enable();
            let losses = self.looks().watchers.losses();
            let mut ready = Ok(());
            if subscribed != Some(losses) {
                ready = self.looks().subscribe(watching.watch.channel()).await;
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
            if is_told && self.looks().watchers.losses() == losses {
                return Ok(()); // The caller claims again.
            }
        }
    }

    async fn do_check(&self) -> Result<Vec<String>, StoreError> {
        let info = self.looks().send(&redis::cmd("INFO")).await.map_err(fault::store_error)?;
        let info = match info {
            Value::BulkString(text) => String::from_utf8_lossy(&text).into_owned(),
            Value::VerbatimString { text, .. } => text,
            other => return Err(table::unexpected_reply(&other)),
        };
        check::check(&info, self.changes().durability(), self.0.accepted)
            .map_err(StoreError::refused)
    }
}

impl RecordStore for Redis {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        Box::pin(self.do_claim(claim))
    }

    fn renew<'s>(&'s self, key: &'s Key, token: Token, lease: Millis) -> StoreFuture<'s, bool> {
        Box::pin(self.do_renew(key, token, lease))
    }

    fn release<'s>(&'s self, key: &'s Key, owner: u64) -> StoreFuture<'s, bool> {
        Box::pin(self.do_release(key, owner))
    }

    fn finalise<'s>(&'s self, key: &'s Key, token: Token, end: &'s End) -> StoreFuture<'s, bool> {
        Box::pin(self.do_finalise(key, token, end))
    }

    fn settle<'s>(
        &'s self,
        key: &'s Key,
        of: Option<Token>,
        end: &'s End,
    ) -> StoreFuture<'s, bool> {
        Box::pin(self.do_settle(key, of, end))
    }

    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        Box::pin(self.do_read(key))
    }

    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        Box::pin(self.do_watch(key, seen))
    }

    fn list<'s>(&'s self, query: &'s Query, limit: usize) -> StoreFuture<'s, Vec<Stored>> {
        Box::pin(async move {
            let mut found = Vec::new();
            if limit > 0 {
                self.each(query, |stored| {
                    found.push(stored);
                    found.len() < limit
                })
                .await?;
            }
            Ok(found)
        })
    }

    fn list_readable<'s>(
        &'s self,
        query: &'s Query,
        limit: usize,
        _: bool,
    ) -> StoreFuture<'s, Listing> {
        Box::pin(self.listing(query, limit))
    }

    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let mut count = 0;
            self.each(query, |_| {
                count += 1;
                true
            })
            .await?;
            Ok(count)
        })
    }

    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let mut meant = Vec::new();
            self.each(query, |stored| {
                if !stored.record.is_pinned() {
                    meant.push(stored);
                }
                true
            })
            .await?;
            let mut gone = 0;
            for stored in &meant {
                gone += u64::from(self.forget(stored).await?);
            }
            Ok(gone)
        })
    }

    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        Box::pin(self.do_clear(key))
    }

    /// Does nothing: the server expires records by itself.
    fn sweep(&self) -> StoreFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(0)))
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(self.do_check())
    }
}

/// A subscription that ends with its last watcher.
struct Watching {
    link: Arc<Link>,
    watch: Watch,
}

impl Watching {
    fn new(link: &Arc<Link>, channel: &[u8]) -> Self {
        Self { link: link.clone(), watch: link.watchers.join(channel) }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if !self.watch.leave() {
            return;
        }
        // Without a runtime the subscription ends with the connection.
        let Ok(runtime) = Handle::try_current() else { return };
        let (link, channel) = (self.link.clone(), self.watch.channel().to_vec());
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

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis")
            .field("prefix", &self.0.prefix)
            .field("durability", &self.changes().durability())
            .finish_non_exhaustive()
    }
}
