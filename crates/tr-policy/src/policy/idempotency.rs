//! Keys of requests for deduplication, and what a record shows of a request.

/// Which repeats a derived key covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derive {
    /// The same tool with the same params within one session.
    Session,
    /// The same within one step of one turn; nothing for a request that names no step.
    Step,
}

/// What a record shows operators of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordRef<'r> {
    /// The caller's key as the caller spelled it.
    pub key: Option<&'r str>,
    /// The user or account.
    pub actor: Option<&'r str>,
    /// The session in which the record is found among equal ones, where that is not the request's.
    pub session: Option<&'r str>,
    /// What else a record says of the request, a line `name: value` each.
    pub about: Option<&'r str>,
}

/// A key that cannot be used. The tool did not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidKey(Box<str>);

impl InvalidKey {
    /// Says what is wrong and what to do.
    #[must_use]
    pub fn new(why: impl Into<Box<str>>) -> Self {
        Self(why.into())
    }
}
