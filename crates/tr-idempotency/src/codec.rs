//! Records as bytes: what is kept of a call, and the notes for operators.
pub(crate) mod body;
mod bounded;
mod failure;
mod frame;
pub(crate) mod notes;
mod outcome;
mod persist;
#[cfg(feature = "encryption")]
mod seal;
mod verdict;

pub(crate) use self::frame::{Found, Frames, Place};
pub use self::persist::Persist;
#[cfg(feature = "encryption")]
pub use self::seal::SealingKey;

/// The latest format that this version reads.
const VERSION: u8 = 2;

/// Why bytes cannot be read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A later version wrote them.
    Newer(u8),
    /// They are not what was written.
    Corrupt(&'static str),
    /// They are sealed with a key that this program does not have.
    Sealed,
    /// They are not sealed, and should be.
    #[cfg(feature = "encryption")]
    Plain,
    /// They were sealed by a version that did not bind them to state and run.
    #[cfg(feature = "encryption")]
    Unbound,
    /// They were sealed for a record that differs in this.
    #[cfg(feature = "encryption")]
    Elsewhere(&'static str),
    /// They hold something that this program cannot read.
    Foreign(String),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Newer(version) => write!(
                f,
                "its format is {version}, and this version reads formats up to {}: update this program",
                VERSION
            ),
            Self::Corrupt(what) => write!(f, "it is corrupt: {what}"),
            Self::Sealed => f.write_str("it is sealed with a key that this program does not have"),
            #[cfg(feature = "encryption")]
            Self::Plain => f.write_str(
                "it is not sealed: another writer of the store forged it, or it is from before the store \
                 was sealed; to read those, set `SealingKey::opens_plain_until`",
            ),
            #[cfg(feature = "encryption")]
            Self::Unbound => f.write_str(
                "it was sealed by a version that did not bind it to its state and run; to read those, \
                 set `SealingKey::opens_unbound_until`",
            ),
            #[cfg(feature = "encryption")]
            Self::Elsewhere(what) => {
                write!(f, "it was sealed for another {what}: another writer changed the store")
            }
            Self::Foreign(why) => write!(f, "its content cannot be decoded: {why}"),
        }
    }
}

impl std::error::Error for Unreadable {}
