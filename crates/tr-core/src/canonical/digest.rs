//! The digest of a canonical text.
#[cfg(feature = "keys")]
use super::{Error, Rules, canonicalizer::with_scratch};
use super::{HexError, fingerprint, hex};
use std::{fmt, str::FromStr};

/// The BLAKE3 hash of a canonical text: equal for two calls that ask for the same thing.
///
/// [`Display`](fmt::Display) and [`FromStr`] use 64 hexadecimal digits, the same everywhere:
/// an attacker who can guess the params can verify the guess. [`Debug`](fmt::Debug) shows a fingerprint
/// that means nothing outside this process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

#[cfg(feature = "keys")]
impl Digest {
    /// The digest of `json`, as far as it counts under `rules`.
    ///
    /// Reuses scratch space of the thread, so a text up to some 60 KiB allocates nothing.
    ///
    /// # Errors
    /// If `json` has no canonical form.
    pub fn of_params(json: impl AsRef<[u8]>, rules: &Rules) -> Result<Self, Error> {
        with_scratch(|canonicalizer, out| {
            canonicalizer.write(json, rules, out)?;
            Ok(Self::of_bytes(&*out))
        })
    }

    /// The digest of `bytes` as they are.
    #[must_use]
    pub fn of_bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self(blake3::hash(bytes.as_ref()).into())
    }
}

impl Digest {
    /// A digest that was taken earlier.
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

#[inline]
pub(super) fn short(bytes: &[u8; 32]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *bytes;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        hex::read(text).map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fingerprint::debug("Digest", &self.0, f)
    }
}
