//! Records as bytes: what is kept of a call, and the notes for operators.
pub(crate) mod body;
mod bounded;
mod frame;
#[cfg(feature = "encryption")]
mod names;
mod notes;
mod outcome;
mod persist;
#[cfg(feature = "encryption")]
mod seal;
#[cfg(not(feature = "encryption"))]
mod unsealed;

pub(crate) use self::frame::{Found, Frames, Place};
#[cfg(feature = "encryption")]
pub(crate) use self::names::Names;
pub use self::persist::Persist;
#[cfg(feature = "encryption")]
pub use self::seal::SealingKey;
#[cfg(not(feature = "encryption"))]
pub(crate) use self::unsealed::{Names, SealingKey};

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
    #[error("it is not sealed: another writer of the store forged it")]
    Plain,
    /// They were sealed for a record that differs in this.
    #[error("it was sealed for another {0}: another writer changed the store")]
    Elsewhere(&'static str),
    /// They hold something that this program cannot read.
    #[error("its content cannot be decoded: {0}")]
    Foreign(String),
}
