//! Stores of sessions that outlive the process, or that several processes share.
//!
//! # What is stored
//!
//! Each session is a log of [`Entry`]s: what was changed, never the whole. A rollback is one
//! entry that moves the head, so it costs the same for 5,000 messages as for 20, and what it
//! leaves behind stays until the session is [compacted](SessionStore::compact). The session is
//! what its entries say, one after the other.
//!
//! # Writing a store
//!
//! A store keeps bytes in order and compares revisions; it looks into nothing. [`Memory`] is the
//! shortest example, the feature `conformance` has the rules as tests.
//!
//! - [`append`](SessionStore::append) is a compare-and-set: of all who append after the same
//!   revision one wins, the others get a [`Conflict`](StoreErrorKind::Conflict). With a unique
//!   key over session and number an engine does most of it by itself.
//! - Every operation is atomic, and can be sent again with the same arguments: futures are
//!   dropped and replies get lost, and what was sent may then have happened or not.
//! - What was confirmed is on the disk, by whatever the engine calls so.
//! - Waiting has an end: a store that cannot be reached says so after a time of its own.
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
//! store.append("s-1", None, &first).await?; // sent again: recognised
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
use std::{fmt, future::Future, pin::Pin};

/// What a store's operations return. They are I/O: a box is nothing beside it.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Keeps sessions as logs of entries.
///
/// # Cancellation
/// A future that is dropped may have done its work or not; all of it or nothing.
///
/// # Errors
/// [`StoreErrorKind`] says of each what has changed and what is safe.
pub trait SessionStore: fmt::Debug + Send + Sync + 'static {
    /// All entries of a session, oldest first, as they were at one moment; none if there is no
    /// such session. The first is numbered 1, or is the base of the last compaction; each of the
    /// others has the next number.
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>>;

    /// Adds an entry behind the one that is named, which must be the last; behind none, it begins
    /// a new session. `entry` has the next number.
    ///
    /// An entry that is there already, by its number and stamp, was sent before: that is a
    /// success, whatever follows it by now.
    ///
    /// # Errors
    /// [`StoreErrorKind::Conflict`] with the head as it is, if that is not `after`.
    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()>;

    /// Puts one entry in the place of all. Its revision must be the head's, and stays so: who has
    /// loaded the session may go on.
    ///
    /// # Errors
    /// [`StoreErrorKind::Conflict`] with the head as it is, if that is another.
    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()>;

    /// Up to `limit` sessions whose ids come after this one, in the order of the ids' bytes.
    fn list<'s>(&'s self, after: Option<&'s str>, limit: usize) -> StoreFuture<'s, Vec<Head>>;

    /// Forgets a session; whether there was one. Who has it loaded gets a conflict.
    fn delete<'s>(&'s self, session: &'s str) -> StoreFuture<'s, bool>;

    /// Looks whether the store can keep its promises, by writing if need be: warnings that an
    /// operator should read.
    fn check(&self) -> StoreFuture<'_, Vec<String>>;
}
