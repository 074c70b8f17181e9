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
//! - A reply that takes more than 500 ms ends the connection, and so does every error that is not about
//!   the command alone; the next request opens another. Sending the same request again is safe and returns its result.
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
//! [`evicting_at_my_own_risk`](Builder::evicting_at_my_own_risk) and
//! [`forgetting_on_restart`](Builder::forgetting_on_restart) accept a risk.
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
//! | refuses the connection, or has no place for it; is loading, a replica, busy; sentinels that know no primary; connecting or the TLS handshake fails | `Unreachable`: nothing has changed |
//! | does not reply in time; breaks the connection; too few replicas confirm the write | `Uncertain` |
//! | is out of memory | `Full`: a claim is not written; an end still is |
//! | wrong password, no permission, a disk that it cannot write, a part of a cluster | `Refused` |
//! | another value under the key, or a newer layout | `Unreadable` |
mod builder;
mod check;
mod durability;
mod fault;
mod layout;
mod link;
mod many;
mod reply;
mod script;
mod sentinels;
mod store;
mod table;
mod tls;
mod watch;

pub use self::{builder::Builder, durability::Durability, store::Redis};
