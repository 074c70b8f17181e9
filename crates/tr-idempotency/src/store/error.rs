//! Errors of a store.
/// The kind of a store's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The request never reached the store: nothing has changed. Sending it again is safe.
    #[error("the record store cannot be reached, and nothing in it has changed")]
    Unreachable,
    /// No reply: the request may have been applied. Sending the same request again is safe and
    /// returns its result.
    #[error("the record store did not reply, so the change may have been made")]
    Uncertain,
    /// The record cannot be read: a newer version wrote it, or it is corrupt. Nothing has changed,
    /// and sending it again does not help. The call may have run; it is not run.
    #[error(
        "the record cannot be read; update this program, or look up how the call ended and clear the record"
    )]
    Unreadable,
    /// The store has no room for a new record. Nothing was written, and the call is not run.
    #[error("the record store is full, and nothing was written")]
    Full,
    /// The store refuses: it is read-only, or configured so that it cannot keep
    /// its promises. Nothing has changed, and sending it again does not help.
    #[error("the record store refused the request; nothing has changed")]
    Refused,
}

tr_core::store_error! {}
