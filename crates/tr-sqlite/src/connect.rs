//! Opens the file, with the checks that come before the first write.
use crate::{
    backoff::while_locked,
    error::{Error, ErrorKind, Result},
    holder::holder,
    log::{Damage, has_frame, judge},
    reset::{exclusively, is_marked, reset},
};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, config::DbConfig};
use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// The `PRAGMA application_id` of these files.
pub(crate) const APPLICATION: i32 = i32::from_be_bytes(*b"trel");

/// The prepared statements that one connection caches.
const STATEMENTS: usize = 64;

/// The write-ahead log is truncated to this size when it restarts.
pub(crate) const LOG_BYTES: u32 = 16 << 20;

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
    /// Whether it is opened although confirmed writes are lost.
    pub(crate) accepts_loss: bool,
}

impl Place {
    /// Creates the file if there is none, and opens it.
    pub(crate) fn open(&self) -> Result<Connection> {
        while_locked(self.lock_wait, || self.try_open()).map_err(|error| self.said(error))
    }

    /// Adds the path, and who keeps it locked.
    pub(crate) fn said(&self, error: Error) -> Error {
        match (error.kind(), holder(&self.path)) {
            (ErrorKind::Locked, Some(holder)) => {
                Error::saying(ErrorKind::Locked, format!("by {holder}")).at(&self.path)
            }
            _ => error.at(&self.path),
        }
    }

    fn try_open(&self) -> Result<Connection> {
        self.find_both()?;
        make(&self.path)?;
        let connection = self.connect()?;
        // Until the log is known to be whole: closed, the connection leaves it as it is.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // [`while_locked`] waits instead: SQLite does not wait in all of these steps, and sleeps too
        // long where it does.
        connection.busy_timeout(Duration::ZERO)?;
        claim(&connection)?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        if mode != "wal" {
            return Err(Error::saying(ErrorKind::Unsuitable, format!("journal mode {mode}")));
        }
        exclusively(&connection, Duration::ZERO, || self.find_log(&connection))?;
        if self.accepts_loss {
            reset(&connection, || self.connect(), Duration::ZERO)?;
        }
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        Ok(connection)
    }

    /// Refuses a log whose file is gone, and a file whose log is, before SQLite deletes or makes a log.
    pub(crate) fn find_both(&self) -> Result<()> {
        let length = |path: &Path| path.metadata().map_or(0, |found| found.len());
        let log = self.log();
        // In this order: a process that makes both begins with the file.
        let what = match (has_frame(length(&log)), length(&self.path) > 0) {
            (true, false) => "the file is missing or empty, and its log is not".to_owned(),
            // If another process makes the log now, it is looked into later.
            (false, true) if self.is_marked_itself() && !has_frame(length(&log)) => missing(&log),
            _ => return Ok(()),
        };
        self.lost(Some(what))
    }

    /// Whether the file itself has the mark; not where it cannot be read.
    fn is_marked_itself(&self) -> bool {
        let file = self.open_alone().map_err(Error::from);
        file.and_then(|file| is_marked(&file)).is_ok_and(|is_marked| is_marked)
    }

    /// Refuses a file whose log is damaged or gone. No process may write meanwhile.
    pub(crate) fn find_log(&self, connection: &Connection) -> Result<()> {
        let log = self.log();
        let bytes = match fs::read(&log) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let finding = judge(&bytes);
        let what = match finding.damage {
            Some(Damage { frame, commits }) => Some(format!(
                "the log {} is damaged at frame {frame}: of its commits {} can be read, and {commits} or more cannot",
                log.display(),
                finding.commits
            )),
            None if !has_frame(bytes.len() as u64) && is_marked(connection)? => Some(missing(&log)),
            None => None,
        };
        self.lost(what)
    }

    fn lost(&self, what: Option<String>) -> Result<()> {
        match what {
            Some(what) if !self.accepts_loss => Err(Error::saying(ErrorKind::Lost, what)),
            _ => Ok(()),
        }
    }

    /// The log, which is beside the file itself, not beside a link to it.
    pub(crate) fn log(&self) -> PathBuf {
        beside(&self.path.canonicalize().unwrap_or_else(|_| self.path.clone()), "-wal")
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

    pub(crate) fn connect(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.lock_wait)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Otherwise a statement with a range is prepared again for each value.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        // The writer makes checkpoints itself.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
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

fn missing(log: &Path) -> String {
    format!("the log {} is missing, with all that was written since it began", log.display())
}

/// Creates the file readable by its owner only, since its content may be secret. SQLite gives the
/// files beside it the same mode.
fn make(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Error::saying(ErrorKind::NotFound, "the path is a folder"));
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(file) => file.sync_all()?,
        // Not opened: closing it would release the locks that this process may have on it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error.into()),
    }
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

/// The path of a file that SQLite keeps beside this one.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
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
