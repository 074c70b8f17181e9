//! Stores of records that outlive the process, or that several processes share.
//!
//! Without a store the layer keeps its records in its own tables: fast, and lost with the process.
//! With a store those tables stay in front of it: they join the duplicates within the process, so
//! that, per key, one caller sends the claim and one watches for another process's end.
//!
//! # The requests of a call
//!
//! 1. [`claim`](RecordStore::claim): one request. If it is granted, the call runs; [`Claimed`]
//!    lists the other results.
//! 2. [`Change::Renew`] at a third of the lease, while it runs.
//! 3. [`Change::Finalize`]: one request. Then the waiters in the process get the
//!    response.
//!
//! A call that is abandoned before it starts is [released](Change::Release). A caller that
//! finds it busy [watches](RecordStore::watch) and claims again.
//!
//! # Writing a store
//!
//! Each operation is one atomic transition of [`protocol`](crate::protocol), of one record, on the
//! store's own clock, since callers' clocks differ. A store that is written in Rust applies
//! [`ClaimRequest::apply`] and [`Change::apply`] in a transaction; [`Memory`] is the shortest
//! example. A store does not interpret `body`, `notes` and `session`:
//! they may be encrypted.
//!
//! Futures may be dropped at any await. What was sent may then be applied or not; every operation
//! is idempotent and can be sent again with the same arguments.
//!
mod error;
mod memory;
mod types;

#[cfg(feature = "encryption")]
pub use crate::codec::SealingKey;
pub use crate::{
    codec::Persist,
    remote::probe::{Finding, Probe, ProbeFuture, UnresolvedCall},
};
pub use tr_core::WhenStoreFails;

pub use self::{
    error::{StoreError, StoreErrorKind},
    memory::Memory,
    types::{
        Before, Change, Changed, ClaimRequest, Claimed, End, Grant, Listing, Query, Seen, Selector,
        StateFilter, Stored, StoredRecord, StoredState, UnreadableRecord,
    },
};
use crate::record::StateCount;
use std::{fmt, future::Future, pin::Pin};
use tr_core::canonical::Key;

/// The future of a store's operation. Boxed, since its cost is negligible beside the I/O.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Keeps records of calls, one per key, and changes each only by the lease
/// [`protocol`](crate::protocol).
///
/// A key holds among the layers and processes that share a store. Every operation is atomic and can
/// be repeated with the same arguments, in case its reply was lost. Times are those of the store's
/// own clock, in milliseconds since the Unix epoch.
///
/// # Errors
/// Each operation returns [`StoreError`]s; their kind says whether it may have been applied.
pub trait RecordStore: fmt::Debug + Send + Sync + 'static {
    /// Claims a call: the one request before it runs.
    ///
    /// A granted token's epoch is above all earlier ones of the key, also those of cleared or
    /// expired records. A claim of the same owner that is in force already is granted again, with
    /// the same token. If the store is full and no record may be evicted, the reply is
    /// [`Claimed::Full`].
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed>;

    /// Makes a change of a claimed record, and wakes the watchers, except for a renewal; `false` if
    /// the claim is lost, or there is no such record. [`Change`] says what the reply to a change is that
    /// was made already.
    fn change<'s>(&'s self, key: &'s Key, change: Change<'s>) -> StoreFuture<'s, bool>;

    /// The record of this key as it stands now: a lease that has ended reads as unknown, and an
    /// expired record as `None`.
    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>>;

    /// Waits until the record may differ from `seen`: finalized, released, settled, cleared, or
    /// claimed by another owner. Returns at once if it differs already, and may return early. The
    /// caller then claims again; it also claims again when the lease ends, so a store need not
    /// watch leases. Must not spin, nor hold a connection that other operations need.
    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()>;

    /// Up to `limit` matching records, in no order, and those that may match and cannot be read, which do
    /// not fail the list. For operators; may be slow. If `is_brief`, the store may leave out the answers
    /// and the earlier runs of calls that are done: answers may be long.
    fn list<'s>(
        &'s self,
        query: &'s Query,
        limit: usize,
        is_brief: bool,
    ) -> StoreFuture<'s, Listing>;

    /// The number of matching records. For operators; may be slow.
    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64>;

    /// The number of records of each tool, by scope and state: for gauges. By default none, of a store that
    /// cannot count them in one request.
    fn state_counts(&self) -> StoreFuture<'_, Vec<StateCount>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Deletes matching records and returns how many, except those in flight and mutating ones of
    /// unknown outcome ([`is_pinned`](crate::protocol::Record::is_pinned)).
    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64>;

    /// Deletes the record of this key, whatever its state, and wakes the watchers; `false` if there
    /// is none.
    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool>;

    /// Deletes expired records, a bounded number at a time, and returns how many. A store that
    /// expires records by itself returns 0.
    fn sweep(&self) -> StoreFuture<'_, u64>;

    /// Checks that the store is reachable and configured to keep its promises, for start-up and
    /// health checks. Returns warnings of what the check cannot rule out, each with a remedy.
    fn check(&self) -> StoreFuture<'_, Vec<String>>;

    /// Sets the store's mark to `to` if it is `from`, atomically, and returns the mark as it then is; empty
    /// is one that was never set. A store that can only be read returns it as it is. By the mark a layer
    /// knows under which [key](SealingKey) the records were written; no operation but this one changes it.
    fn mark<'s>(&'s self, from: &'s [u8], to: &'s [u8]) -> StoreFuture<'s, Vec<u8>>;

    /// Whether the process that last claimed this key is alive; `None` if the store cannot tell, as
    /// by default, or has no such record.
    fn is_owner_alive<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<bool>> {
        let _ = key;
        Box::pin(async { Ok(None) })
    }
}
