//! The error type: what is wrong, what is safe, and what to do.
use rusqlite::ErrorCode;
use std::{
    error, fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A write, a read or an opening that failed. Cheap to clone: all jobs of a group get the same.
///
/// Its text says whether anything was kept and what to do about it.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    path: Option<PathBuf>,
    undecided: bool,
    cause: Option<Cause>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such folder, or the path names no file.
    NotFound,
    /// This user may not read or write the file or its folder.
    Denied,
    /// The file holds something else.
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
    /// The file has a part in an older format, or not at all, and was opened only to be read.
    Older {
        /// The part of the file: a [`Schema`](crate::Schema)'s name.
        part: String,
        /// The format that the file has; 0 if it does not have the part.
        found: u32,
        /// The one that is read.
        known: u32,
    },
    /// Parts of the file are damaged.
    Corrupt,
    /// A row holds something that this program cannot have written.
    Unreadable,
    /// The job refused: what it was to write has no place.
    Refused,
    /// There is no space left.
    Full,
    /// Another process kept the file locked for all the time that was allowed.
    Locked,
    /// The file was deleted or replaced while it was open.
    Moved,
    /// The file system cannot hold a database that several processes share.
    Unsuitable,
    /// Too many jobs wait already.
    Overloaded,
    /// The database was opened only to be read.
    ReadOnly,
    /// The database was closed.
    Closed,
    /// The job panicked.
    Panicked,
    /// Something else in the same group made SQLite undo all of it.
    Undone,
    /// The job's statement failed: a constraint, a mistake in its SQL.
    Statement,
    /// The disk failed, or the operating system.
    Io,
}

enum Cause {
    Sqlite(rusqlite::Error),
    Io(io::Error),
    Text(String),
}

/// What a job gives: a value, or an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Arc::new(Inner { kind, path: None, undecided: false, cause: None }))
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed)
    }

    pub(crate) fn panicked(message: &str) -> Self {
        Self::saying(ErrorKind::Panicked, message)
    }

    /// What a job returns that finds a row as this program cannot have written it.
    #[must_use]
    pub fn unreadable(what: impl fmt::Display) -> Self {
        Self::saying(ErrorKind::Unreadable, what.to_string())
    }

    /// What a job returns that cannot do what it was asked for, and never will.
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

    /// Names the file.
    pub(crate) fn at(self, path: &Path) -> Self {
        self.with(|inner| inner.path = Some(path.to_owned()))
    }

    /// It came from the commit itself: what was written may be there after the next start.
    pub(crate) fn of_commit(self) -> Self {
        self.with(|inner| inner.undecided = matches!(inner.kind, ErrorKind::Io))
    }

    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        // An error is changed only by who has just made it.
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            change(inner);
        }
        self
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The job may have been kept although it failed: the disk failed in the middle of the commit.
    ///
    /// With any other error nothing of the job was kept.
    #[must_use]
    pub fn may_be_kept(&self) -> bool {
        self.0.undecided
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
            return Self::new(ErrorKind::Unreadable).because(Cause::Sqlite(error));
        }
        let kind = match error.sqlite_error_code() {
            // The file itself was opened before: it is the folder, for the files beside it.
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
        Self::new(kind).because(Cause::Sqlite(error))
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
        Self::new(kind).because(Cause::Io(error))
    }
}

impl ErrorKind {
    /// What is wrong and what to do.
    fn advice(&self) -> &'static str {
        match self {
            Self::NotFound => {
                "there is no such file, and none can be made here: name a file in a folder that exists"
            }
            Self::Denied => {
                "this user may not write here: allow it to write the file and its folder"
            }
            Self::NotADatabase => {
                "this file is no SQLite database, and was left as it is: name another"
            }
            Self::Foreign => {
                "this is another program's database, and was left as it is: name another file"
            }
            Self::Newer { .. } => {
                "a newer version wrote this file, and it was left as it is: update this program, or name another file"
            }
            Self::Older { .. } => {
                "this file does not have what is read here, and was left as it is: name another, or let the program that writes it open it first"
            }
            Self::Corrupt => {
                "the file is damaged: stop all its users, keep a copy, and try `sqlite3 FILE .recover` into a new one"
            }
            Self::Unreadable => {
                "a row cannot be read: update this program, or look into the file with `sqlite3`"
            }
            Self::Refused => "this cannot be done",
            Self::Full => {
                "no space is left; what was confirmed before is safe: free some and repeat this"
            }
            Self::Locked => {
                "another process keeps the file locked: end it, or its transaction, and repeat this"
            }
            Self::Moved => {
                "the file was deleted or replaced while it was open: restart what uses it"
            }
            Self::Unsuitable => {
                "this file system cannot share a database among processes: name a file on a local disk"
            }
            Self::Overloaded => "too many jobs wait for the disk: repeat this later",
            Self::ReadOnly => "the database was opened only to be read",
            Self::Closed => "the database was closed",
            Self::Panicked => "the job panicked",
            Self::Undone => "another job of the same commit made SQLite undo it: repeat this",
            Self::Statement => "the statement failed",
            Self::Io => "the disk or the operating system failed",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, path, undecided, cause } = &*self.0;
        if let Some(path) = path {
            write!(f, "{}: ", path.display())?;
        }
        f.write_str(kind.advice())?;
        if let ErrorKind::Newer { part, found, known } | ErrorKind::Older { part, found, known } =
            kind
        {
            write!(f, " (`{part}` has format {found}, known is {known})")?;
        }
        match cause {
            Some(Cause::Sqlite(error)) => write!(f, " ({error})")?,
            Some(Cause::Io(error)) => write!(f, " ({error})")?,
            Some(Cause::Text(text)) => write!(f, " ({text})")?,
            None => {}
        }
        f.write_str(if *undecided {
            "; whether this was kept is not known"
        } else {
            "; nothing of this was kept"
        })
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, path, undecided, .. } = &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("path", path)
            .field("may_be_kept", undecided)
            .field("cause", &error::Error::source(self))
            .finish_non_exhaustive()
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.0.cause {
            Some(Cause::Sqlite(error)) => Some(error),
            Some(Cause::Io(error)) => Some(error),
            _ => None,
        }
    }
}
