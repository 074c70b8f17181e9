//! Records as bytes: what is kept of a call, and what operators are told of it.
pub(crate) mod body;
mod flaw;
mod frame;
pub(crate) mod notes;
mod outcome;
mod persist;
#[cfg(feature = "encryption")]
mod seal;

pub(crate) use self::frame::{Frames, Kind};
pub use self::persist::Persist;
#[cfg(feature = "encryption")]
pub use self::seal::SealingKey;

/// Bytes that cannot be read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A later version wrote them.
    Newer(u8),
    /// They are not what was written.
    Corrupt(&'static str),
    /// They are sealed with a key that is not at hand.
    Sealed,
    /// They hold something that this program cannot read.
    Foreign(String),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Newer(version) => write!(
                f,
                "it has format {version}, and this version reads formats up to {}: update this program",
                frame::VERSION
            ),
            Self::Corrupt(what) => write!(f, "it is corrupt: {what}"),
            Self::Sealed => f.write_str("it is sealed with a key that this program does not have"),
            Self::Foreign(why) => write!(f, "its answer has another form: {why}"),
        }
    }
}

impl std::error::Error for Unreadable {}
