//! The error type: what failed, what is safe, and what to do.
use crate::meaning::Meaning;
use rusqlite::ErrorCode;
use std::{
    error, fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A failed write, read or open. Cheap to clone: all jobs of a group get the same error.
///
/// Its text says whether anything was committed and what to do.
#[derive(Clone, Debug)]
pub struct Error(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    path: Option<PathBuf>,
    undecided: bool,
    cause: Option<Cause>,
}

/// The kind of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The folder is missing, or the path is not that of a file.
    NotFound,
    /// This user may not read or write the file or its folder.
    Denied,
    /// The file is not a SQLite database.
    NotADatabase,
    /// The file is another program's database.
    Foreign,
    /// A newer version of the program wrote this file.
    Newer {
        /// The part of the file: a [`Schema`](crate::Schema)'s name.
        part: String,
        /// The format that the file has.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// The file lacks a part, or has it in an older format, and was opened read-only.
    Older {
        /// The part of the file: a [`Schema`](crate::Schema)'s name.
        part: String,
        /// The format that the file has; 0 if it does not have the part.
        found: u32,
        /// The format that this program reads.
        known: u32,
    },
    /// Parts of the file are damaged.
    Corrupt,
    /// Confirmed writes are lost: the write-ahead log is damaged or missing, or the file itself is.
    Lost,
    /// A row holds data that this program cannot have written.
    Unreadable,
    /// The job refused to write.
    Refused,
    /// The disk is full.
    Full,
    /// Another process kept the file locked for longer than the
    /// [`lock_wait`](crate::Builder::lock_wait).
    Locked,
    /// The file was deleted or replaced while it was open.
    Moved,
    /// The file system cannot hold a database that several processes share.
    Unsuitable,
    /// Too many jobs wait already.
    Overloaded,
    /// The database was opened read-only.
    ReadOnly,
    /// The database was closed.
    Closed,
    /// The job panicked.
    Panicked,
    /// Another job of the same group made SQLite roll the group back.
    Undone,
    /// The job's statement failed: a constraint, or wrong SQL.
    Statement,
    /// The disk failed, or the operating system.
    Io,
}

#[derive(Debug)]
enum Cause {
    Error(Box<dyn error::Error + Send + Sync>),
    Text(String),
}

/// The result of a job.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Arc::new(Inner { kind, path: None, undecided: false, cause: None }))
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed)
    }

    /// The error of a job that reads a row which this program cannot have written.
    #[must_use]
    pub fn unreadable(what: impl fmt::Display) -> Self {
        Self::saying(ErrorKind::Unreadable, what.to_string())
    }

    /// The error of a job that can never succeed.
    #[must_use]
    pub fn refused(why: impl Into<String>) -> Self {
        Self::saying(ErrorKind::Refused, why)
    }

    pub(crate) fn saying(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self::new(kind).because(Cause::Text(text.into()))
    }

    fn because(self, cause: Cause) -> Self {
        self.with(|inner| inner.cause = Some(cause))
    }

    /// Adds the path of the file.
    pub(crate) fn at(self, path: &Path) -> Self {
        self.with(|inner| inner.path = Some(path.to_owned()))
    }

    /// Marks an error of the commit itself: the writes may be there after the next start.
    pub(crate) fn of_commit(self) -> Self {
        self.with(|inner| inner.undecided = matches!(inner.kind, ErrorKind::Io))
    }

    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        // An error is changed only before it is cloned.
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            change(inner);
        }
        self
    }

    /// The kind of a failure.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Whether the job may have been committed although it failed: the disk failed during the
    /// commit.
    ///
    /// With any other error nothing of the job was committed.
    #[must_use]
    pub fn may_be_kept(&self) -> bool {
        self.0.undecided
    }

    /// What this error means for the caller.
    ///
    /// ```
    /// use tr_sqlite::{Error, Meaning};
    ///
    /// assert_eq!(Error::unreadable("a state that is none").meaning(), Meaning::Unreadable);
    /// ```
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        if self.may_be_kept() { Meaning::Uncertain } else { self.kind().facts().0 }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType,
        };
        if let FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) =
            error
        {
            return Self::new(ErrorKind::Unreadable).because(Cause::Error(error.into()));
        }
        let kind = match error.sqlite_error_code() {
            // The file itself was opened before, so it is the folder, for the files beside it.
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                ErrorKind::Denied
            }
            Some(ErrorCode::NotADatabase) => ErrorKind::NotADatabase,
            Some(ErrorCode::DatabaseCorrupt) => ErrorKind::Corrupt,
            Some(ErrorCode::DiskFull) => ErrorKind::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorKind::Locked,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OutOfMemory,
            ) => ErrorKind::Io,
            _ => ErrorKind::Statement,
        };
        Self::new(kind).because(Cause::Error(error.into()))
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ErrorKind::Denied
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            _ => ErrorKind::Io,
        };
        Self::new(kind).because(Cause::Error(error.into()))
    }
}

impl ErrorKind {
    /// What failed, without what to do about it.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.facts().1
    }

    /// What it means for the caller, what failed, and what to do.
    fn facts(&self) -> (Meaning, &'static str, &'static str) {
        use Meaning::{Permanent, Transient, Unreadable};
        match self {
            Self::NotFound => (
                Permanent,
                "no file can be opened or created at this path",
                "choose a file in an existing folder",
            ),
            Self::Denied => (
                Permanent,
                "permission denied",
                "allow this user to write the file and its folder; if its file system is mounted read-only, mount it for writing",
            ),
            Self::NotADatabase => (
                Unreadable,
                "not a SQLite database; the file was not changed",
                "restore a backup if it was one, or choose another file, which knows nothing of this one",
            ),
            Self::Foreign => (
                Permanent,
                "the database belongs to another program; the file was not changed",
                "choose another file",
            ),
            Self::Newer { .. } => (
                Unreadable,
                "a newer version wrote this file; the file was not changed",
                "update this program, or choose another file",
            ),
            Self::Older { .. } => (
                Permanent,
                "the file lacks a part or has an older format, and is opened read-only; the file was not changed",
                "choose another file, or open it once with the program that writes it",
            ),
            Self::Corrupt => (
                Unreadable,
                "the file is damaged",
                "stop all programs that use it, keep a copy, and run `sqlite3 FILE .recover` into a new file",
            ),
            Self::Lost => (
                Unreadable,
                "confirmed writes are lost; the files were not changed",
                "stop all programs that use them, keep copies, and restore a backup or accept the loss",
            ),
            Self::Unreadable => (
                Unreadable,
                "a row cannot be read",
                "update this program, or inspect the file with `sqlite3`",
            ),
            Self::Refused => (Permanent, "the write was refused", ""),
            Self::Full => (
                Transient,
                "the disk is full; confirmed writes are safe",
                "free space and try again",
            ),
            Self::Locked => (
                Transient,
                "another process keeps the file locked",
                "end that process or its transaction, and try again",
            ),
            Self::Moved => (
                Permanent,
                "the file was deleted or replaced while it was open",
                "restart the program that uses it",
            ),
            Self::Unsuitable => (
                Permanent,
                "the file system cannot share a database between processes",
                "choose a file on a local disk",
            ),
            Self::Overloaded => (Transient, "too many jobs wait for the disk", "try again later"),
            Self::ReadOnly => (Permanent, "the database was opened read-only", ""),
            Self::Closed => (Permanent, "the database was closed", ""),
            Self::Panicked => (Transient, "the job panicked", ""),
            Self::Undone => {
                (Transient, "another job of the same commit made SQLite roll it back", "try again")
            }
            Self::Statement => (Permanent, "the statement failed", ""),
            Self::Io => (Transient, "the disk or the operating system failed", ""),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, path, undecided, cause } = &*self.0;
        if let Some(path) = path {
            write!(f, "{}: ", path.display())?;
        }
        match kind.facts() {
            (_, what, "") => f.write_str(what)?,
            (_, what, then) => write!(f, "{what}: {then}")?,
        }
        if let ErrorKind::Newer { part, found, known } | ErrorKind::Older { part, found, known } =
            kind
        {
            write!(f, " (`{part}` has format {found}, this program knows {known})")?;
        }
        match cause {
            Some(Cause::Error(error)) => write!(f, " ({error})")?,
            Some(Cause::Text(text)) => write!(f, " ({text})")?,
            None => {}
        }
        f.write_str(if *undecided {
            "; this write may or may not have been committed"
        } else {
            "; nothing was committed"
        })
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.0.cause {
            Some(Cause::Error(error)) => Some(&**error),
            _ => None,
        }
    }
}
