//! Idempotency keys: what names one call in a store of records.
use super::{HexError, digest::short, fingerprint, hex};
use std::{fmt, str::FromStr};

/// Names one call: two calls with the same key are one call.
///
/// A hash of [`KeyParts`](super::KeyParts), so that a store sees neither the caller's key nor its session.
/// [`Display`](fmt::Display) and [`FromStr`] use 64 hexadecimal digits, for stores;
/// [`Debug`](fmt::Debug) shows a fingerprint, for logs.
///
/// ```
/// use tr_core::canonical::{Key, KeyParts, KeyScope, KeySource};
///
/// let order = KeyParts {
///     scope: KeyScope::Session {
///         tenant: None,
///         workspace: None,
///         session: Some("s1"),
///         actor: Some("ada"),
///     },
///     namespace: Some("shop"),
///     tool: "order",
///     action: None,
///     source: KeySource::Caller("order-42"),
///     step: None,
/// };
/// let key = Key::derive(&order);
/// assert_ne!(key, Key::derive(&KeyParts { namespace: None, ..order }));
/// assert_eq!(key.to_string().parse(), Ok(key));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(super) [u8; 32]);

impl Key {
    /// A key that was derived earlier.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// All 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 8 bytes as a little-endian number, for tables.
    #[must_use]
    pub fn short(&self) -> u64 {
        short(&self.0)
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Key {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        hex::read(text).map(Self)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fingerprint::debug("Key", &self.0, f)
    }
}
