//! Sessions in PostgreSQL, shared by machines.
//!
//! # When to use
//!
//! For sessions that must outlive a machine, or agents whose next call may run on another one. On
//! one machine a file is faster.
//!
//! # Example
//!
//! ```no_run
//! use tr_integrity::{postgres::Postgres, store::SessionStore};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tr_core::BoxError> {
//! let store = Postgres::builder("postgresql://agent@db.example/agents").build()?;
//! for warning in store.check().await? {
//!     eprintln!("{warning}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # TLS
//!
//! The feature `postgres-tls` adds TLS for servers whose address says `sslmode=require` or
//! `sslmode=verify-full`: both verify that the server's certificate is signed by an authority of
//! the system's, or by one given to `Builder::tls_roots`, and that it names the address's host.
//! This verification cannot be switched off. Without `sslmode` connections are in plain text,
//! unless certificates are given. [`Builder::build_with_tls`] accepts another TLS implementation.
//!
//! # What holds
//!
//! - An append, a compaction and a deletion are one statement each, and so one round trip. A
//!   confirmed change is committed according to the server's own `synchronous_commit`.
//! - Of several writers that append after the same entry one wins: they queue at the row of the
//!   session's head. Writers of different sessions do not block each other.
//! - The tables `tr_session_heads` and `tr_session_entries` are created at the first use, in the
//!   first schema of the `search_path`, by one process while others wait. The role needs the right
//!   to create tables for this first use, and later only to read and write these two.
//! - A connection that breaks is replaced at the next use. The operation that was running on it is
//!   [`Uncertain`](crate::store::StoreErrorKind::Uncertain); sending it again tells the outcome.
//!
//! # Looking into the tables
//!
//! `SELECT * FROM tr_sessions` shows each session with its length and size. To forget one, delete
//! its row of `tr_session_heads`: its entries go with it.
//!
//! # Errors
//!
//! The source of a [`StoreError`] is PostgreSQL's own error. A server that cannot be reached, is
//! starting, has no free connection, does not speak the requested TLS, or shows a certificate that
//! is not trusted is [`Unreachable`](crate::store::StoreErrorKind::Unreachable). Read-only servers,
//! full disks, missing rights and tables of a newer version are
//! [`Refused`](crate::store::StoreErrorKind::Refused).
//!
//! # Not supported
//!
//! Poolers that assign connections per transaction, unless they support prepared statements.
mod address;
mod builder;
mod fault;
mod schema;
mod table;

pub use self::builder::Builder;

use crate::store::{Entry, Head, Revision, SessionStore, StoreError, StoreFuture};
use deadpool_postgres::{ClientWrapper, Object, Pool};
use std::time::Duration;
use tokio::{sync::OnceCell, time::timeout};
use tr_core::debug_parts;

/// Sessions in PostgreSQL. Clients of one database share their sessions.
pub struct Postgres {
    pool: Pool,
    patience: Duration,
    /// Set once the tables exist.
    made: OnceCell<()>,
}

/// The connection of one operation. If the operation fails or its future is dropped, the connection
/// is closed: otherwise the next operation would read its reply.
struct Lease(Option<Object>);

impl Postgres {
    /// The reply to the statements of one operation, on a database in which the tables exist.
    async fn run<T>(
        &self,
        operation: impl AsyncFnOnce(&ClientWrapper) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let connection = timeout(self.patience, self.pool.get()).await;
        let connection = connection.map_err(StoreError::unreachable)?.map_err(fault::of_pool)?;
        let mut lease = Lease(Some(connection));
        let make = async || match timeout(self.patience, schema::make(lease.client())).await {
            Ok(made) => made,
            Err(overdue) => Err(StoreError::unreachable(overdue)),
        };
        self.made.get_or_try_init(make).await?;
        let reply = timeout(self.patience, operation(lease.client())).await;
        let done = reply.map_err(StoreError::uncertain)?.map_err(fault::of_statement)?;
        lease.0 = None; // Back to the pool.
        Ok(done)
    }
}

impl Lease {
    fn client(&mut self) -> &mut ClientWrapper {
        self.0.as_mut().expect("it is there until the lease ends")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(Object::take(connection));
        }
    }
}

impl SessionStore for Postgres {
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        Box::pin(self.run(async |client| table::load(client, session).await))
    }

    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let append =
                self.run(async |client| table::append(client, session, after, entry).await);
            append.await?.map_err(StoreError::conflict)
        })
    }

    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let compact = self.run(async |client| table::compact(client, session, base).await);
            compact.await?.map_err(StoreError::conflict)
        })
    }

    fn list<'s>(&'s self, after: Option<&'s str>, limit: usize) -> StoreFuture<'s, Vec<Head>> {
        Box::pin(async move {
            let heads = self.run(async |client| table::list(client, after, limit).await).await?;
            let head = |(id, revision, at)| {
                let session = String::from_utf8(id).map_err(StoreError::unreadable)?;
                Ok(Head { session, revision, at })
            };
            heads.into_iter().map(head).collect()
        })
    }

    fn delete<'s>(&'s self, session: &'s str) -> StoreFuture<'s, bool> {
        Box::pin(self.run(async |client| table::delete(client, session).await))
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(self.run(schema::check))
    }
}

// Omits the address, which may hold a password.
debug_parts! { Postgres, |it| pool = it.pool.status() }
