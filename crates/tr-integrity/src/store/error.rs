//! Errors of a session store.
use super::Revision;

/// What a store's failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Nothing has changed: the request was not sent, or the store rolled it back. Sending it again is
    /// safe.
    #[error(
        "the session store did not make the change, or cannot be reached; trying again is safe"
    )]
    Unreachable,
    /// No reply: the operation may have been done. Sending the same again is safe and tells whether
    /// it was.
    #[error(
        "the session store did not answer, so the change may have been made; sending the same again is safe"
    )]
    Uncertain,
    /// Another writer was first: nothing has changed, and sending the same again does not help.
    /// Load the session and decide again.
    #[error("the session was {}; nothing was kept: load it and decide again", changed(*.head))]
    Conflict {
        /// The revision of the session's last entry; `None` if there is no such session.
        head: Option<Revision>,
    },
    /// The session cannot be read: a newer version wrote it, or it is damaged. Nothing has
    /// changed, and sending it again does not help.
    #[error("the session cannot be read: update this program, or check the store for damage")]
    Unreadable,
    /// The store refuses: it is full, read-only, or its settings break its guarantees. Nothing has
    /// changed, and sending it again does not help.
    #[error("the session store refused the request; nothing has changed")]
    Refused,
}

tr_core::store_error! {}

impl StoreError {
    /// [`StoreErrorKind::Conflict`]
    #[must_use]
    pub const fn conflict(head: Option<Revision>) -> Self {
        Self { kind: StoreErrorKind::Conflict { head }, cause: None }
    }

    /// Whether another writer was first.
    #[must_use]
    pub const fn is_conflict(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Conflict { .. })
    }
}

fn changed(head: Option<Revision>) -> String {
    head.map_or_else(
        || "deleted elsewhere".into(),
        |head| format!("changed elsewhere and is at revision {head}"),
    )
}
