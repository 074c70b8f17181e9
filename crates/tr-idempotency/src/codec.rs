//! Records as bytes: what is kept of a call, and the notes for operators.
pub(crate) mod body;
mod bounded;
mod failure;
mod frame;
mod notes;
mod outcome;
mod persist;
#[cfg(feature = "encryption")]
mod seal;
#[cfg(not(feature = "encryption"))]
mod unsealed;
mod verdict;

pub(crate) use self::frame::{Found, Frames, Place};
pub use self::persist::Persist;
#[cfg(feature = "encryption")]
pub use self::seal::SealingKey;
#[cfg(not(feature = "encryption"))]
pub(crate) use self::unsealed::SealingKey;

/// The latest format that this version reads.
const VERSION: u8 = 2;

/// Why bytes cannot be read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// A later version wrote them.
    #[error(
        "its format is {0}, and this version reads formats up to {VERSION}: update this program"
    )]
    Newer(u8),
    /// They are not what was written.
    #[error("it is corrupt: {0}")]
    Corrupt(&'static str),
    /// They are sealed with a key that this program does not have.
    #[error("it is sealed with a key that this program does not have")]
    Sealed,
    /// They are not sealed, and should be.
    #[error(
        "it is not sealed: another writer of the store forged it, or it is from before the store \
         was sealed; to read those, set `SealingKey::opens_plain_until`"
    )]
    Plain,
    /// They were sealed for a record that differs in this.
    #[error("it was sealed for another {0}: another writer changed the store")]
    Elsewhere(&'static str),
    /// They hold something that this program cannot read.
    #[error("its content cannot be decoded: {0}")]
    Foreign(String),
}
