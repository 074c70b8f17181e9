//! What a failure means for the caller.

/// What a failure means for the caller, and what is safe; from [`Error::meaning`](crate::Error::meaning).
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
