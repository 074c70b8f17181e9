//! What goes wrong in a transaction, in the words of the store.
use crate::store::StoreError;
use std::fmt;
use tr_sqlite::{Error, ErrorKind, rusqlite};

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// Undoes the transaction's changes.
#[derive(Debug)]
pub(super) enum Fault {
    Database(Error),
    /// A row that this version cannot have written.
    Unreadable(String),
    /// A session has as many entries as it can.
    Full,
}

impl Fault {
    pub(super) fn unreadable(what: impl fmt::Display) -> Self {
        Self::Unreadable(what.to_string())
    }

    pub(super) fn into_store(self) -> StoreError {
        let error = match self {
            Self::Unreadable(what) => return StoreError::unreadable(what),
            Self::Full => {
                return StoreError::refused(
                    "the session has 4294967295 entries, no more can follow",
                );
            }
            Self::Database(error) => error,
        };
        if error.may_be_kept() {
            return StoreError::uncertain(error);
        }
        match error.kind() {
            ErrorKind::Corrupt | ErrorKind::NotADatabase | ErrorKind::Newer { .. } => {
                StoreError::unreadable(error)
            }
            ErrorKind::Locked
            | ErrorKind::Overloaded
            | ErrorKind::Undone
            | ErrorKind::Panicked
            | ErrorKind::Io => StoreError::unreachable(error),
            _ => StoreError::refused(error),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType,
        };
        match error {
            FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) => {
                Self::unreadable(error)
            }
            error => Self::Database(error.into()),
        }
    }
}
