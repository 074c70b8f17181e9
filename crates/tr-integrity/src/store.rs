//! Stores for sessions that must outlive the process or are shared by several processes.
//!
//! # What is stored
//!
//! Each session is a log of [`Entry`]s that hold its changes, not the whole session. A rollback is
//! one entry that moves the head, so it takes the same time for 5,000 messages as for 20, and the
//! removed messages stay in the log until the session is [compacted](SessionStore::compact).
//! Replaying the entries in order gives the session.
//!
//! # Writing a store
//!
//! A store keeps bytes in order and compares revisions; it does not parse entries. [`Memory`] is
//! the shortest example; the feature `conformance` has the rules as tests.
//!
//! - [`append`](SessionStore::append) is a compare-and-set: of several writers that append after
//!   the same revision one wins, the others get a [`Conflict`](StoreErrorKind::Conflict). With a
//!   unique key over session and number, most engines check this themselves.
//! - Every operation is atomic, and can be sent again with the same arguments: futures are dropped
//!   and replies get lost, and the operation may then have happened or not.
//! - A confirmed entry is on disk, as the engine defines it.
//! - Operations time out: a store that cannot be reached returns an error after its own timeout.
//!
//! ```
//! use tr_integrity::store::{Entry, Memory, Revision, SessionStore};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tr_core::BoxError> {
//! let store = Memory::new();
//! let first = Entry {
//!     revision: Revision { number: 1, stamp: 7 },
//!     at: 0,
//!     body: b"any bytes".to_vec(),
//! };
//! store.append("s-1", None, &first).await?;
//! store.append("s-1", None, &first).await?; // sent again: recognized
//!
//! let late = Entry { revision: Revision { number: 1, stamp: 8 }, ..first.clone() };
//! let conflict = store.append("s-1", None, &late).await.unwrap_err();
//! assert!(conflict.is_conflict());
//! assert_eq!(store.load("s-1").await?, [first]);
//! # Ok(())
//! # }
//! ```
mod error;
mod memory;
mod types;

pub use self::{
    error::{StoreError, StoreErrorKind},
    memory::Memory,
    types::{Entry, Head, Revision},
};
use std::{fmt, pin::Pin};

/// The return type of a store's operations. They do I/O, so boxing is cheap by comparison.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Keeps sessions as logs of entries.
///
/// # Cancellation
/// A dropped future has done all of its work or nothing.
///
/// # Errors
/// [`StoreErrorKind`] says for each error what has changed and whether a retry is safe.
pub trait SessionStore: fmt::Debug + Send + Sync + 'static {
    /// All entries of a session, oldest first, as a consistent snapshot; empty if there is no such
    /// session. The first entry has number 1, or is the base of the last compaction; each other
    /// entry has the next number.
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>>;

    /// Appends an entry after the one named by `after`, which must be the last; with `None`, begins
    /// a new session. `entry` has the next number.
    ///
    /// An entry with the same number and stamp as a stored one was sent before: that is a success,
    /// even if other entries follow it.
    ///
    /// # Errors
    /// [`StoreErrorKind::Conflict`] with the current head, if that is not `after`.
    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()>;

    /// Replaces all entries by one. Its revision must be the head's and stays the same, so writers
    /// that have loaded the session can continue.
    ///
    /// # Errors
    /// [`StoreErrorKind::Conflict`] with the current head, if that is another.
    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()>;

    /// Up to `limit` sessions whose ids follow `after`, in the order of the ids' bytes.
    fn list<'s>(&'s self, after: Option<&'s str>, limit: usize) -> StoreFuture<'s, Vec<Head>>;

    /// Deletes a session; returns whether there was one. Writers that have it loaded get a
    /// conflict.
    fn delete<'s>(&'s self, session: &'s str) -> StoreFuture<'s, bool>;

    /// Checks whether the store can keep its guarantees, if necessary by a write; returns warnings
    /// for the operator.
    fn check(&self) -> StoreFuture<'_, Vec<String>>;
}
