//! Sessions in PostgreSQL, shared by machines.
//!
//! # When to use
//!
//! Where sessions have to outlive a machine, or an agent's next call may land on another one. On
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
//! The feature `postgres-tls` secures the way to a server whose address says `sslmode=require` or
//! `sslmode=verify-full`: both verify that the server's certificate is signed by an authority of the
//! system's, or by one given to `Builder::tls_roots`, and names the address's host. Nothing switches
//! this off. Without `sslmode` connections are in clear, unless certificates are given.
//! [`Builder::build_with_tls`] takes TLS of another kind.
//!
//! # What holds
//!
//! - An append, a compaction and a deletion are one statement each, and so one round trip. What
//!   was confirmed is committed, by the server's own `synchronous_commit`.
//! - Of all who append behind the same entry one wins: they queue at the row of the session's
//!   head. Writers of different sessions do not meet.
//! - The tables `tr_session_heads` and `tr_session_entries` are made at the first use, in the
//!   first schema of the `search_path`; by one process, while others wait. The role needs the
//!   right to make tables once, later only to read and write these.
//! - A connection that breaks is replaced at the next use. What was under way on it is
//!   [`Uncertain`](crate::store::StoreErrorKind::Uncertain); sending it again tells.
//!
//! # Looking into the tables
//!
//! `SELECT * FROM tr_sessions` shows each session with its length and size. To forget one, delete
//! its row of `tr_session_heads`: its entries go with it.
//!
//! # Errors
//!
//! Sources of the [`StoreError`]s are PostgreSQL's own errors. A server that cannot be reached, is
//! starting, has no connection left, does not speak TLS that is asked for, or shows a certificate
//! that is not trusted is
//! [`Unreachable`](crate::store::StoreErrorKind::Unreachable). Read-only servers, full disks and
//! missing rights are [`Refused`](crate::store::StoreErrorKind::Refused), as are tables that a
//! newer version made.
//!
//! # Not supported
//!
//! Poolers that give each transaction another connection, unless they keep prepared statements.
mod address;
mod builder;
mod fault;
mod schema;
mod table;

pub use self::builder::Builder;

use crate::store::{Entry, Head, Revision, SessionStore, StoreError, StoreFuture};
use deadpool_postgres::{ClientWrapper, Object, Pool};
use std::{fmt, future::Future, time::Duration};
use tokio::{sync::OnceCell, time::timeout};

/// Sessions in PostgreSQL. Clients of one database share their sessions.
pub struct Postgres {
    pool: Pool,
    patience: Duration,
    /// Whether the tables are there.
    made: OnceCell<()>,
}

/// A connection of one operation. If that does not end, by itself or because nobody waits for it
/// any more, the connection goes with it: who came next would wait for its answer.
struct Lease {
    connection: Option<Object>,
}

impl Postgres {
    /// How to keep sessions at this address: a URL or `key=value` pairs, as `libpq` takes them.
    pub fn builder(address: impl Into<String>) -> Builder {
        Builder::new(address.into())
    }

    /// A connection to a database that has the tables.
    async fn lease(&self) -> Result<Lease, StoreError> {
        let connection = timeout(self.patience, self.pool.get()).await;
        let connection = connection.map_err(StoreError::unreachable)?.map_err(fault::of_pool)?;
        let mut lease = Lease { connection: Some(connection) };
        let make = async || match timeout(self.patience, schema::make(lease.client_mut())).await {
            Ok(made) => made,
            Err(overdue) => Err(StoreError::unreachable(overdue)),
        };
        self.made.get_or_try_init(make).await?;
        Ok(lease)
    }

    /// The answer to a statement on a lease.
    async fn answer<T>(
        &self,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        match timeout(self.patience, statement).await {
            Ok(answer) => answer.map_err(fault::of_statement),
            Err(overdue) => Err(StoreError::uncertain(overdue)),
        }
    }
}

impl Lease {
    fn client(&self) -> &ClientWrapper {
        self.connection.as_ref().expect("it is there until the lease ends")
    }

    fn client_mut(&mut self) -> &mut ClientWrapper {
        self.connection.as_mut().expect("it is there until the lease ends")
    }

    /// The connection is good for another one.
    fn end(mut self) {
        self.connection = None;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}

impl SessionStore for Postgres {
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        Box::pin(async move {
            let lease = self.lease().await?;
            let entries = self.answer(table::load(lease.client(), session)).await?;
            lease.end();
            Ok(entries)
        })
    }

    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let lease = self.lease().await?;
            let append = table::append(lease.client(), session, after, entry);
            let end = self.answer(append).await?;
            lease.end();
            end.map_err(StoreError::conflict)
        })
    }

    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let lease = self.lease().await?;
            let end = self.answer(table::compact(lease.client(), session, base)).await?;
            lease.end();
            end.map_err(StoreError::conflict)
        })
    }

    fn list<'s>(&'s self, after: Option<&'s str>, limit: usize) -> StoreFuture<'s, Vec<Head>> {
        Box::pin(async move {
            let lease = self.lease().await?;
            let heads = self.answer(table::list(lease.client(), after, limit)).await?;
            lease.end();
            let head = |(id, revision, at)| {
                let session = String::from_utf8(id).map_err(StoreError::unreadable)?;
                Ok(Head { session, revision, at })
            };
            heads.into_iter().map(head).collect()
        })
    }

    fn delete<'s>(&'s self, session: &'s str) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            let lease = self.lease().await?;
            let was_there = self.answer(table::delete(lease.client(), session)).await?;
            lease.end();
            Ok(was_there)
        })
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move {
            let lease = self.lease().await?;
            let warnings = self.answer(schema::check(lease.client())).await?;
            lease.end();
            Ok(warnings)
        })
    }
}

/// Without the address: it may hold a password.
impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("pool", &self.pool.status()).finish_non_exhaustive()
    }
}
