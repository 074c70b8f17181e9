//! Records in a SQLite file, shared by the processes of one machine.
//!
//! # When to use
//!
//! Where records have to outlive the process, and all processes that share them run on one machine.
//! Several processes may open the file at once. For several machines, use a store that is a server.
//!
//! # Example
//!
//! ```
//! use tr_idempotency::{sqlite::Sqlite, store::{Query, RecordStore}};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tr_core::BoxError> {
//! # let path = std::env::temp_dir().join(format!("tr-calls-doc-{}.db", std::process::id()));
//! # let _ = std::fs::remove_file(&path);
//! let store = Sqlite::open(&path).await?;
//! assert_eq!(store.count(&Query::ALL).await?, 0);
//! store.close().await;
//! # std::fs::remove_file(&path)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - A claim and an end are on the disk before the store replies. Calls that arrive while the disk
//!   is busy share one sync. [`Durability`] says what they survive.
//! - Each operation is one transition of [`protocol`](crate::protocol), in one exclusive
//!   transaction.
//! - Time is the machine's, read once when the file is opened and then advanced by a monotonic
//!   clock, so it does not jump while the process lives. It never runs back behind the latest time
//!   in the file, whatever the machine's clock says after a restart.
//! - The file also counts how long it has been in use. A record expires when both clocks say so: a
//!   machine's clock that was, or is, far ahead makes no record expire. While no process has the file
//!   open, records are kept for longer than their time to live.
//! - A watcher of another process's call reads the record every 50 ms.
//!
//! # Looking into the file
//!
//! `sqlite3 calls.db 'SELECT * FROM calls_now'` shows each record as it stands, with readable
//! times. Rows of `calls` may be deleted by hand: that clears the record.
//!
//! # Errors
//!
//! Errors of the file are [`tr_sqlite::Error`]s, the sources of [`StoreError`]s. A lock held by
//! another process and a full disk are [`Unreachable`](crate::store::StoreErrorKind::Unreachable),
//! a disk that failed during a commit [`Uncertain`](crate::store::StoreErrorKind::Uncertain),
//! damage [`Unreadable`](crate::store::StoreErrorKind::Unreadable), a replaced file and missing
//! permissions [`Refused`](crate::store::StoreErrorKind::Refused).
mod change;
mod layout;
mod owners;
#[cfg(test)]
mod plans;
mod row;
mod selection;
mod table;
mod time;

pub use tr_sqlite::{Database, Durability, Error, ErrorKind};

use self::{owners::Owners, selection::Selection, table::Table, time::Clocks};
use crate::{
    clock::SteadyClock,
    record::StateCount,
    store::{
        Change, ClaimRequest, Claimed, Listing, Query, RecordStore, Seen, StoreError, StoreFuture,
        Stored,
    },
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tr_core::{WallClock, canonical::Key, setters};
use tr_sqlite::rusqlite;

/// The default capacity.
const CAPACITY: u64 = 1_000_000;

/// The most rows that one transaction deletes, since other writes wait for it.
const AT_ONCE: usize = 1_000;

/// How often a watcher reads the record.
const LOOK: Duration = Duration::from_millis(50);

/// Records in a SQLite file. A clone shares the file.
#[derive(Clone, Debug)]
pub struct Sqlite {
    database: Database,
    settings: Arc<Settings>,
}

/// How to keep records in a SQLite file.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    capacity: u64,
    clock: Option<Arc<dyn WallClock>>,
    owners: Option<PathBuf>,
}

#[derive(Debug)]
struct Settings {
    capacity: u64,
    clocks: Clocks,
    owners: Option<Owners>,
}

impl Sqlite {
    /// Opens or creates this file with the default settings. [`builder`](Self::builder) has the
    /// settings.
    ///
    /// # Errors
    /// See [`tr_sqlite::Builder::open`] and [`tr_sqlite::Database::migrate`]. A file that is
    /// refused is not changed.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, tr_sqlite::Error> {
        let database = Database::open(path).await?;
        Self::builder().on(database).await
    }

    /// Starts with the defaults: a capacity of a million records.
    pub const fn builder() -> Builder {
        Builder { capacity: CAPACITY, clock: None, owners: None }
    }

    /// The database, which other tables may share.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Writes pending changes, and closes the file for all clones.
    pub async fn close(&self) {
        self.database.close().await;
    }

    /// Applies a change in a transaction.
    async fn write<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Table<'_>) -> Result<T, Error> + Send + 'static,
        T: Send + 'static,
    {
        let settings = self.settings.clone();
        self.database.write(move |connection| Ok(change(&settings.table(connection)?)?)).await
    }

    /// Reads in one snapshot.
    async fn look<T, F>(&self, look: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Table<'_>) -> Result<T, Error> + Send + 'static,
        T: Send + 'static,
    {
        let settings = self.settings.clone();
        self.database.read(move |connection| Ok(look(&settings.table(connection)?)?)).await
    }
}

impl Settings {
    fn table<'c>(&'c self, connection: &'c rusqlite::Connection) -> Result<Table<'c>, Error> {
        Table::new(connection, &self.clocks, self.owners.as_ref())
    }
}

impl Builder {
    setters! {
        /// Detects at once when a process that shares the file has ended, and ends the leases of its
        /// claims: each process holds a lock on a file of its own in `folder`. All processes must use
        /// the same folder; it is created if it is missing. Without it a killed process's calls stay in
        /// flight until their leases end.
        fn owners(folder: impl Into<PathBuf>) { owners = Some(folder.into()) }

        /// Sets the capacity in records; a million by default. At capacity the settled record that
        /// expires next is evicted. If all are of calls in flight or of unknown outcome, the store is
        /// full.
        fn capacity(records: u64) { capacity = records }

        /// Sets the clock; the machine's by default. It may jump only while the file is closed: what passes
        /// on it while the file is open counts as time in use.
        fn clock(clock: Arc<dyn WallClock>) { clock = Some(clock) }
    }

    /// Keeps records in this database, beside other tables. A database that is opened
    /// [read-only](tr_sqlite::Builder::read_only) only shows them: all changes are refused.
    ///
    /// # Errors
    /// See [`tr_sqlite::Database::migrate`], and, of one that is to be written,
    /// [`verify`](tr_sqlite::Database::verify): a record that its key does not find would run again.
    pub async fn on(self, database: Database) -> Result<Sqlite, tr_sqlite::Error> {
        let Self { capacity, clock, owners } = self;
        database.migrate(layout::CALLS).await?;
        if !database.is_read_only() {
            database.verify(Some("calls")).await?;
        }
        let owners = match owners {
            Some(folder) if database.is_read_only() => Some(Owners::watch(folder)),
            owners => owners.map(Owners::join).transpose().map_err(Error::from)?,
        };
        let ran = database.read(table::ran).await?;
        let clocks = Clocks::new(clock.unwrap_or_else(|| Arc::new(SteadyClock::new())), ran);
        Ok(Sqlite { database, settings: Arc::new(Settings { capacity, clocks, owners }) })
    }
}

impl RecordStore for Sqlite {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        let (claim, capacity) = (claim.clone(), self.settings.capacity);
        Box::pin(async move {
            let claimed = self.write(move |table| change::claim(table, &claim, capacity)).await?;
            if matches!(&claimed, Claimed::Unknown(it) if it.record.changed_at == it.now) {
                // If its process has ended, that was now for all who read it later; else it is found again.
                let _ = self.write(table::end_dead_leases).await;
            }
            Ok(claimed)
        })
    }

    fn change<'s>(&'s self, key: &'s Key, change: Change<'s>) -> StoreFuture<'s, bool> {
        let (key, change) = (*key, change.into_owned());
        Box::pin(self.write(move |table| change::change(table, &key, change)))
    }

    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        let key = *key;
        Box::pin(self.look(move |table| table.standing(&key)))
    }

    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            while self.read(key).await?.is_some_and(|stored| stored.seen() == seen) {
                tokio::time::sleep(LOOK).await;
            }
            Ok(())
        })
    }

    fn list<'s>(
        &'s self,
        query: &'s Query,
        limit: usize,
        is_brief: bool,
    ) -> StoreFuture<'s, Listing> {
        let query = query.clone();
        Box::pin(self.look(move |table| table.listing(&query, limit, is_brief)))
    }

    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        if self.database.is_read_only() {
            // The leases of dead processes cannot be ended in it.
            let all = self.list(query, usize::MAX, true);
            return Box::pin(async move { Ok(all.await?.records.len() as u64) });
        }
        let selection = Selection::of(query);
        Box::pin(async move {
            self.write(table::end_dead_leases).await?;
            self.look(move |table| table.count(&selection)).await
        })
    }

    fn state_counts(&self) -> StoreFuture<'_, Vec<StateCount>> {
        Box::pin(self.look(table::state_counts))
    }

    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let mut flushed = 0;
            loop {
                let selection = Selection::of(query);
                let some = self.write(move |table| {
                    table::end_dead_leases(table)?;
                    table.flush(&selection, AT_ONCE)
                });
                match some.await? {
                    0 => return Ok(flushed),
                    some => flushed += some,
                }
            }
        })
    }

    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        let key = *key;
        Box::pin(self.write(move |table| table.clear(&key)))
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        Box::pin(self.write(|table| {
            table::end_dead_leases(table)?;
            table.sweep(AT_ONCE)
        }))
    }

    fn mark<'s>(&'s self, from: &'s [u8], to: &'s [u8]) -> StoreFuture<'s, Vec<u8>> {
        let (from, to) = (from.to_vec(), to.to_vec());
        Box::pin(async move {
            let mark = self.look(table::mark).await?;
            if mark != from || mark == to || self.database.is_read_only() {
                return Ok(mark);
            }
            self.write(move |table| table.set_mark(&from, &to)).await
        })
    }

    fn is_owner_alive<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<bool>> {
        let key = *key;
        Box::pin(self.look(move |table| table.is_owner_alive(&key)))
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        let settings = self.settings.clone();
        let durability = self.database.durability();
        Box::pin(self.write(move |table| change::check(table, settings.capacity, durability)))
    }
}
