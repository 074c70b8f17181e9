//! What goes into a store of sessions, and what comes out.
use std::fmt;

/// Names an entry of a session's log, and what the session was after it.
///
/// Two writers that append at the same number draw different stamps: so one that has won by a
/// reply that got lost recognises itself, and a session that was deleted and begun anew is not
/// taken for the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Revision {
    /// Counts the entries, from 1.
    pub number: u64,
    /// Drawn by the writer.
    pub stamp: u64,
}

/// What one append adds to a session's log. A store does not look into it.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub revision: Revision,
    /// When it was written, in milliseconds since the Unix epoch by the writer's clock; less
    /// than 2⁶³.
    pub at: u64,
    /// Any bytes, of any length. They carry their own version and checksum.
    pub body: Vec<u8>,
}

/// A session as [`list`](super::SessionStore::list) gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The session's id.
    pub session: String,
    /// Of its last entry.
    pub revision: Revision,
    /// When that was written, in milliseconds since the Unix epoch.
    pub at: u64,
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

/// The body may hold secrets: only its length is shown.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("revision", &self.revision)
            .field("at", &self.at)
            .field("bytes", &self.body.len())
            .finish()
    }
}
