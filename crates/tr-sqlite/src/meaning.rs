//! What a failure means for the caller.
use crate::error::{Error, ErrorKind};

/// What a failure means for the caller, and what is safe; from [`Error::meaning`].
///
/// A store over a [`Database`](crate::Database) maps these to its own kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Nothing was committed, and the cause is transient: a retry is safe and may succeed.
    Transient,
    /// It may have been committed or not: a retry is safe if the job is idempotent.
    Uncertain,
    /// The file or a row cannot be read: a newer version wrote it, or it is damaged. Nothing was
    /// committed.
    Unreadable,
    /// Nothing was committed, and a retry does not help.
    Permanent,
}

impl Error {
    /// What this error means for the caller.
    ///
    /// ```
    /// use tr_sqlite::{Error, Meaning};
    ///
    /// assert_eq!(Error::unreadable("a state that is none").meaning(), Meaning::Unreadable);
    /// ```
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        if self.may_be_kept() {
            return Meaning::Uncertain;
        }
        match self.kind() {
            ErrorKind::Corrupt
            | ErrorKind::NotADatabase
            | ErrorKind::Lost
            | ErrorKind::Newer { .. }
            | ErrorKind::Unreadable => Meaning::Unreadable,
            ErrorKind::Locked
            | ErrorKind::Overloaded
            | ErrorKind::Undone
            | ErrorKind::Panicked
            | ErrorKind::Full
            | ErrorKind::Io => Meaning::Transient,
            ErrorKind::NotFound
            | ErrorKind::Denied
            | ErrorKind::Foreign
            | ErrorKind::Older { .. }
            | ErrorKind::Moved
            | ErrorKind::Unsuitable
            | ErrorKind::ReadOnly
            | ErrorKind::Closed
            | ErrorKind::Refused
            | ErrorKind::Statement => Meaning::Permanent,
        }
    }
}
