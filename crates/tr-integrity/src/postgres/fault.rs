//! Converts PostgreSQL's errors to store errors.
use crate::store::{StoreError, StoreErrorKind};
use deadpool_postgres::PoolError;
use std::{error, fmt};
use tokio_postgres::{Error, error::SqlState};

/// An error of tokio-postgres, displayed with its cause: its own text is only "db error".
#[derive(Debug, thiserror::Error)]
pub(super) struct WithCause(#[source] pub(super) Error);

/// Converts the failure to get a connection: nothing was sent.
pub(super) fn of_pool(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => {
            let kind = match kind(&error) {
                // Trying again does not help against missing permissions; it may against other failures.
                StoreErrorKind::Refused => StoreErrorKind::Refused,
                _ => StoreErrorKind::Unreachable,
            };
            StoreError::new(kind, WithCause(error))
        }
        other => StoreError::unreachable(other),
    }
}

/// Converts the failure of a statement.
pub(super) fn of_statement(error: Error) -> StoreError {
    StoreError::new(kind(&error), WithCause(error))
}

fn kind(error: &Error) -> StoreErrorKind {
    let Some(state) = error.code() else {
        // The connection broke, before or after the statement took effect.
        return StoreErrorKind::Uncertain;
    };
    match state.code().get(..2) {
        // Rolled back because of a concurrent transaction.
        Some("40") => StoreErrorKind::Unreachable,
        // Terminated from outside, perhaps after the commit.
        Some("08") => StoreErrorKind::Uncertain,
        Some("57") if *state == SqlState::CANNOT_CONNECT_NOW => StoreErrorKind::Unreachable,
        Some("57") => StoreErrorKind::Uncertain,
        Some("53") if *state == SqlState::TOO_MANY_CONNECTIONS => StoreErrorKind::Unreachable,
        // Damaged data or index.
        Some("XX") => StoreErrorKind::Unreadable,
        // The statement was refused as a whole: missing rights, a read-only server, a full disk.
        _ => StoreErrorKind::Refused,
    }
}

impl fmt::Display for WithCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_db_error(), error::Error::source(&self.0)) {
            (Some(error), _) => write!(f, "{} ({})", error.message(), error.code().code()),
            (None, Some(cause)) => write!(f, "{}: {cause}", self.0),
            (None, None) => self.0.fmt(f),
        }
    }
}
