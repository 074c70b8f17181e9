//! Opens the file, with the checks that come before the first write.
use crate::{
    backoff::Backoff,
    error::{Error, ErrorKind, Result},
};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, config::DbConfig};
use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
    time::Duration,
};

/// The `PRAGMA application_id` of these files.
pub(crate) const APPLICATION: i32 = i32::from_be_bytes(*b"trel");

/// The prepared statements that one connection caches.
const STATEMENTS: usize = 64;

/// The write-ahead log is truncated to this size when it restarts.
const LOG_BYTES: u32 = 16 << 20;

/// What a confirmed write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// A power failure: the disk syncs before a write is confirmed (`synchronous = FULL`, one sync
    /// for each group).
    #[default]
    Power,
    /// The end of the process, also by `kill -9` (`synchronous = NORMAL`). A power failure may lose
    /// the last confirmed writes, and never damages the file.
    Process,
}

/// The path of the file and how it is written.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) lock_wait: Duration,
}

impl Place {
    /// Creates the file if there is none, and opens it.
    pub(crate) fn open(&self) -> Result<Connection> {
        let mut backoff = Backoff::new(self.lock_wait);
        loop {
            match self.try_open() {
                Err(error) if *error.kind() == ErrorKind::Locked && backoff.wait() => {}
                end => return end.map_err(|error| error.at(&self.path)),
            }
        }
    }

    fn try_open(&self) -> Result<Connection> {
        make(&self.path)?;
        let connection = self.connect()?;
        // [`Backoff`] waits instead: SQLite does not wait in all of these steps, and sleeps too
        // long where it does.
        connection.busy_timeout(Duration::ZERO)?;
        claim(&connection)?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        if mode != "wal" {
            return Err(Error::saying(ErrorKind::Unsuitable, format!("journal mode {mode}")));
        }
        Ok(connection)
    }

    /// Another connection, which only reads.
    pub(crate) fn open_reader(&self) -> Result<Connection> {
        let connect = || {
            let connection = self.connect()?;
            connection.pragma_update(None, "query_only", true)?;
            Ok(connection)
        };
        connect().map_err(|error: Error| error.at(&self.path))
    }

    fn connect(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.lock_wait)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Otherwise a statement with a range is prepared again for each value.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        let synchronous = match self.durability {
            Durability::Power => "full",
            Durability::Process => "normal",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        // These differ only on macOS.
        connection.pragma_update(None, "fullfsync", self.durability == Durability::Power)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        Ok(connection)
    }
}

/// Creates the file readable by its owner only, since its content may be secret. SQLite gives the
/// files beside it the same mode.
fn make(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Error::saying(ErrorKind::NotFound, "the path is a folder"));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.create(true).open(path)?.sync_all()?;
    // Otherwise a power failure may lose the directory entry, and the file with it.
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        std::fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Sets the application id of an empty file; refuses other programs' files.
fn claim(connection: &Connection) -> Result<()> {
    let mark = || connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0));
    if mark()? == APPLICATION {
        return Ok(());
    }
    // Another process may be setting it now.
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let mark = mark()?;
    if mark == APPLICATION {
        return Ok(());
    }
    let tables: u32 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if mark != 0 || tables > 0 {
        return Err(Error::saying(
            ErrorKind::Foreign,
            format!("application_id {mark}, {tables} tables and indexes"),
        ));
    }
    connection.pragma_update(None, "application_id", APPLICATION)?;
    Ok(transaction.commit()?)
}

/// The identity of a file, to notice when its path names another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    /// `None` if there is no file, or the system cannot tell files apart.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = path.metadata().ok()?;
        Some(Self(found.dev(), found.ino()))
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &Path) -> Option<Self> {
        None
    }
}
