//! Stores of records that outlive the process, or that several processes share.
//!
//! Without a store the layer keeps its records in its own tables: fast, and gone with the process.
//! With one those tables stay in front: they join the duplicates within the process, so that of
//! all its callers one asks the store, and one watches for another process's end.
//!
//! # A call's way
//!
//! 1. [`claim`](RecordStore::claim): one request. Granted, the call runs; [`Claimed`] says what
//!    else there is.
//! 2. [`renew`](RecordStore::renew) at a third of the lease, while it runs.
//! 3. [`finalise`](RecordStore::finalise): one request. Then the process's own waiters are served.
//!
//! A call that is given up before it starts is [released](RecordStore::release). Who finds it busy
//! [watches](RecordStore::watch) and claims again.
//!
//! # Writing a store
//!
//! Each operation is one atomic transition of [`protocol`](crate::protocol), of one record, on the
//! store's own clock; callers' clocks differ. A store that is written in Rust applies
//! [`ClaimRequest::apply`] and the methods of [`Record`](crate::protocol::Record) in a
//! transaction; [`Memory`] is the shortest example. A store's `body`, `notes` and `session` are
//! bytes and text that it does not look into: they may be encrypted.
//!
//! Futures may be dropped at any await. What was sent may then happen or not; every operation can
//! be sent again with the same arguments and is recognised.
//!
mod error;
mod memory;
mod types;

#[cfg(feature = "encryption")]
pub use crate::codec::SealingKey;
pub use crate::{
    codec::Persist,
    remote::{
        WhenStoreFails,
        probe::{Finding, Probe, ProbeFuture, UnresolvedCall},
    },
};

pub use self::{
    error::{StoreError, StoreErrorKind},
    memory::Memory,
    types::{
        Before, ClaimRequest, Claimed, End, Grant, Query, Seen, Selector, StateFilter, Stored,
        StoredRecord, StoredState,
    },
};
use crate::protocol::{Millis, Token};
use std::{fmt, future::Future, pin::Pin};
use tr_core::canonical::Key;

/// What a store's operations return. They are I/O: a box is nothing beside it.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Keeps records of calls, one per key, and changes each by the lease
/// [`protocol`](crate::protocol) only.
///
/// Share one between layers and processes as far as a key is to hold. Every operation is atomic
/// and can be repeated with the same arguments, in case its reply was lost. Times are those of the
/// store's own clock, in milliseconds since the Unix epoch.
///
/// # Errors
/// Each operation's are [`StoreError`]s; their kind says whether it may have happened.
pub trait RecordStore: fmt::Debug + Send + Sync + 'static {
    /// Claims a call: the one request before it runs.
    ///
    /// A granted token's epoch is above all earlier ones of the key, also of records that were
    /// cleared or are over. A claim of the same owner that is in force already is granted again,
    /// with the same token. Where no other record can be forgotten to make room, the reply is
    /// [`Claimed::Full`], and nothing is.
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed>;

    /// Prolongs a lease to `lease` from now; `false` if the claim is lost.
    fn renew<'s>(&'s self, key: &'s Key, token: Token, lease: Millis) -> StoreFuture<'s, bool>;

    /// Forgets a claim under which nothing was started, and wakes who watches; `false` if this
    /// owner has none. The owner alone proves it: who never saw the reply to its claim knows no
    /// epoch.
    fn release<'s>(&'s self, key: &'s Key, owner: u64) -> StoreFuture<'s, bool>;

    /// Records how a call ended, and wakes who watches; `false` if the claim is lost. Late is fine
    /// while nobody else has claimed or settled it. Sent again it changes nothing and is `true`.
    fn finalise<'s>(&'s self, key: &'s Key, token: Token, end: &'s End) -> StoreFuture<'s, bool>;

    /// Says how a call of unknown outcome ended, and wakes who watches; `false` if there is none,
    /// or it is not that `of` this claim. The record passes to [`Token::BY_HAND`] at a higher
    /// epoch, so whoever held it has lost it.
    fn settle<'s>(&'s self, key: &'s Key, of: Option<Token>, end: &'s End)
    -> StoreFuture<'s, bool>;

    /// The record of this key as it stands now: a lease that has ended reads as unknown, and a
    /// record whose time is over is not there.
    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>>;

    /// Waits until the record may differ from what was `seen`: finalised, released, settled,
    /// cleared, claimed by another. At once, if it does already. May end early; whoever waits
    /// claims again, and looks again by itself when the lease that it was told of ends, so a store
    /// need not watch leases. Neither spins nor holds a connection that others need.
    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()>;

    /// Up to `limit` records, in no order. For operators; may be slow.
    fn list<'s>(&'s self, query: &'s Query, limit: usize) -> StoreFuture<'s, Vec<Stored>>;

    /// How many records there are of these. For operators; may be slow.
    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64>;

    /// Forgets these records and says how many, but for those in flight and mutating ones of
    /// unknown outcome ([`is_pinned`](crate::protocol::Record::is_pinned)).
    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64>;

    /// Forgets the record of this key, whatever it says, and wakes who watches; `false` if there
    /// is none.
    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool>;

    /// Forgets records whose time is over, a bounded number at a time, and says how many. A store
    /// that does so by itself has nothing to do.
    fn sweep(&self) -> StoreFuture<'_, u64>;

    /// Whether the store can be reached and keeps its promises as it is set up, for start-up and
    /// health checks. Gives warnings of what it cannot rule out, each with what to do about it.
    fn check(&self) -> StoreFuture<'_, Vec<String>>;
}
