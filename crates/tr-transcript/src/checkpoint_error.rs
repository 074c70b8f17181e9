//! Why a transcript or a file cannot be rolled back.

/// A checkpoint that cannot be used. The session is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// There is no checkpoint with this id.
    #[error("Checkpoint not found: {0}")]
    NotFound(Box<str>),
    /// The messages before the checkpoint have changed.
    #[error("Checkpoint integrity mismatch — messages were modified")]
    Mismatch,
}
