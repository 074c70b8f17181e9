//! What a failure means for whoever asked.
use crate::error::{Error, ErrorKind};

/// What a failure means for whoever asked, and what is safe. [`Error::meaning`] tells.
///
/// A store over a [`Database`](crate::Database) has to say no more of an error than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Nothing was kept, and the cause may pass: asking again is safe and may help.
    Passing,
    /// It may have been kept or not: asking again tells, if what is asked for recognises itself.
    Uncertain,
    /// What is there cannot be read: a newer version wrote it, or it is damaged. Nothing was kept.
    Unreadable,
    /// Nothing was kept, and asking again does not help.
    Final,
}

impl Error {
    /// What it means.
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
            | ErrorKind::Newer { .. }
            | ErrorKind::Unreadable => Meaning::Unreadable,
            ErrorKind::Locked
            | ErrorKind::Overloaded
            | ErrorKind::Undone
            | ErrorKind::Panicked
            | ErrorKind::Full
            | ErrorKind::Io => Meaning::Passing,
            ErrorKind::NotFound
            | ErrorKind::Denied
            | ErrorKind::Foreign
            | ErrorKind::Older { .. }
            | ErrorKind::Moved
            | ErrorKind::Unsuitable
            | ErrorKind::ReadOnly
            | ErrorKind::Closed
            | ErrorKind::Refused
            | ErrorKind::Statement => Meaning::Final,
        }
    }
}
