//! The types of a session store.
use std::fmt;
use tr_core::debug_parts;

/// Identifies an entry of a session's log, and the session's state after it.
///
/// Two writers that append the same number draw different stamps. So a writer whose confirmation
/// got lost recognizes its own entry, and a session that was deleted and created again is not
/// confused with the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Revision {
    /// The entry's number, from 1.
    pub number: u64,
    /// Drawn by the writer.
    pub stamp: u64,
}

/// What one append adds to a session's log. A store does not parse it.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its revision.
    pub revision: Revision,
    /// When it was written, in milliseconds since the Unix epoch by the writer's clock; less
    /// than 2⁶³.
    pub at: u64,
    /// Any bytes, of any length. They carry their own version and checksum.
    pub body: Vec<u8>,
}

/// A session in the result of [`list`](super::SessionStore::list).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The session's id.
    pub session: String,
    /// The revision of its last entry.
    pub revision: Revision,
    /// When that was written, in milliseconds since the Unix epoch.
    pub at: u64,
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

// Shows only the length of the body, which may hold secrets.
debug_parts! { Entry, |it| revision = it.revision, at = it.at, bytes = it.body.len() }
