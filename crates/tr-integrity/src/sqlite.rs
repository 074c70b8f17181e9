//! Sessions in a SQLite file, shared by the processes of one machine.
//!
//! # When to use
//!
//! For sessions that must outlive the process, if all processes that share them run on one machine.
//! Several processes may open the file at once. For several machines, use a store that is a server.
//!
//! # Example
//!
//! ```
//! use tr_integrity::{Format, Sessions, sqlite::Sqlite};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tr_core::BoxError> {
//! # let path = std::env::temp_dir().join(format!("tr-sessions-doc-{}.db", std::process::id()));
//! # let _ = std::fs::remove_file(&path);
//! let store = Sqlite::open(&path).await?;
//! let sessions = Sessions::builder(Format::AnthropicMessages).store(store.clone()).build()?;
//! let hello = Format::AnthropicMessages.read(r#"{"role":"user","content":"hello"}"#)?;
//! sessions.change("s-1", |session, _now| session.push(hello)).await?;
//! store.close().await;
//! # std::fs::remove_file(&path)?;
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - An entry is on disk before the store confirms it: one row, one commit. Writers that arrive
//!   during a sync share the next one. [`Durability`] says which failures entries survive.
//! - Of several processes that append after the same entry one wins; the others get a
//!   [`Conflict`](crate::store::StoreErrorKind::Conflict).
//! - Only [`compact`](crate::store::SessionStore::compact) and
//!   [`delete`](crate::store::SessionStore::delete) rewrite or remove entries. The file keeps the
//!   freed pages for later entries.
//!
//! # Looking into the file
//!
//! `sqlite3 sessions.db 'SELECT * FROM sessions_now'` shows each session; the `body` of a row of
//! `session_log` is text: a line with version and checksum, and the changes as JSON.
//!
//! # Errors
//!
//! The sources of [`StoreError`]s are [`Error`]s of the file: a lock held by another process and a
//! full disk are [`Unreachable`](crate::store::StoreErrorKind::Unreachable), a disk failure during
//! a commit is [`Uncertain`](crate::store::StoreErrorKind::Uncertain), damage is
//! [`Unreadable`](crate::store::StoreErrorKind::Unreadable), a replaced file and missing rights are
//! [`Refused`](crate::store::StoreErrorKind::Refused).
mod layout;
#[cfg(test)]
mod plans;
mod table;

pub use tr_sqlite::{Database, Durability, Error, ErrorKind};

use self::table::Table;
use crate::store::{Entry, Head, Revision, SessionStore, StoreError, StoreFuture};
use std::path::PathBuf;

/// Sessions in a SQLite file. A clone shares the file.
#[derive(Clone, Debug)]
pub struct Sqlite {
    database: Database,
}

impl Sqlite {
    /// Opens this file with the defaults, or makes it; [`on`](Self::on) takes a database that was
    /// opened with others.
    ///
    /// # Errors
    /// See [`tr_sqlite::Builder::open`] and [`tr_sqlite::Database::migrate`]. A file that is
    /// refused was not changed.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::on(Database::open(path).await?).await
    }

    /// Opens a file that is there, and only to look at its sessions, beside those who write them. All
    /// writes are [refused](crate::store::StoreErrorKind::Refused).
    ///
    /// # Errors
    /// See [`tr_sqlite::Builder::read_only`] and [`tr_sqlite::Database::migrate`]. The file is left as
    /// it is.
    pub async fn open_read_only(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let database = Database::builder(path).read_only().open().await?;
        match Self::on(database.clone()).await {
            Err(error) => {
                // So that SQLite leaves nothing beside a file that is refused.
                database.close().await;
                Err(error)
            }
            opened => opened,
        }
    }

    /// Keeps sessions in this database, beside what others keep there.
    ///
    /// # Errors
    /// See [`tr_sqlite::Database::migrate`].
    pub async fn on(database: Database) -> Result<Self, Error> {
        database.migrate(layout::SESSIONS).await?;
        Ok(Self { database })
    }

    /// The file, which others may share.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Writes what was sent, and closes the file for all who share it.
    pub async fn close(&self) {
        self.database.close().await;
    }

    /// Applies a change in a transaction. It is sent by this very call.
    fn change<T, F>(&self, change: F) -> StoreFuture<'static, T>
    where
        F: FnOnce(&Table<'_>) -> Result<T, Error> + Send + 'static,
        T: Send + 'static,
    {
        Box::pin(self.database.write(move |connection| Ok(change(&Table(connection))?)))
    }

    /// Looks at the sessions of one moment.
    fn look<T, F>(&self, look: F) -> StoreFuture<'static, T>
    where
        F: FnOnce(&Table<'_>) -> Result<T, Error> + Send + 'static,
        T: Send + 'static,
    {
        Box::pin(self.database.read(move |connection| Ok(look(&Table(connection))?)))
    }
}

impl SessionStore for Sqlite {
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        let session = session.to_owned();
        self.look(move |table| table.load(&session))
    }

    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()> {
        let (session, entry) = (session.to_owned(), entry.clone());
        let appended = self.change(move |table| table.append(&session, after, &entry));
        Box::pin(async { appended.await?.map_err(StoreError::conflict) })
    }

    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()> {
        let (session, base) = (session.to_owned(), base.clone());
        let compacted = self.change(move |table| table.compact(&session, &base));
        Box::pin(async { compacted.await?.map_err(StoreError::conflict) })
    }

    fn list<'s>(&'s self, after: Option<&'s str>, limit: usize) -> StoreFuture<'s, Vec<Head>> {
        let after = after.map(str::to_owned);
        self.look(move |table| table.list(after.as_deref(), limit))
    }

    fn delete<'s>(&'s self, session: &'s str) -> StoreFuture<'s, bool> {
        let session = session.to_owned();
        self.change(move |table| table.delete(&session))
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        let durability = self.database.durability();
        self.change(move |table| {
            table.try_writing()?;
            Ok(match durability {
                Durability::Power => Vec::new(),
                // None that is added later is known to outlive a loss of power.
                _ => vec![
                    "a loss of power may take the last turns, and what tools did in them: \
                     use Durability::Power for mutating tools"
                        .into(),
                ],
            })
        })
    }
}
