//! The digest of a text.

/// The one form of all texts that ask for the same thing, such as `Rules` of `tr-core` have it for JSON.
pub trait CanonicalForm {
    /// Why a text has no such form.
    type Error;

    /// Calls `read` with the form of `text`.
    ///
    /// # Errors
    /// If there is none.
    fn read<T>(&self, text: &[u8], read: impl FnOnce(&[u8]) -> T) -> Result<T, Self::Error>;
}

/// The BLAKE3 hash of a canonical text: equal for two calls that ask for the same thing.
///
/// [`Display`](std::fmt::Display) and [`FromStr`](std::str::FromStr) use 64 hexadecimal digits, the same everywhere:
/// an attacker who can guess the params can verify the guess. [`Debug`](std::fmt::Debug) shows a fingerprint
/// that means nothing outside this process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

#[cfg(feature = "keys")]
impl Digest {
    /// The digest of `json`, as far as it counts under `rules`.
    ///
    /// # Errors
    /// If `json` has no canonical form.
    pub fn of_params<R: CanonicalForm>(
        json: impl AsRef<[u8]>,
        rules: &R,
    ) -> Result<Self, R::Error> {
        rules.read(json.as_ref(), |text| Self::of_bytes(text))
    }

    /// The digest of `bytes` as they are.
    #[must_use]
    pub fn of_bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self(blake3::hash(bytes.as_ref()).into())
    }
}

/// What the hashes of this module have in common: 32 bytes, spelled in 64 hexadecimal digits.
macro_rules! hash {
    ($name:ident) => {
        impl $name {
            /// One that was taken earlier.
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
            #[inline]
            #[must_use]
            pub fn short(&self) -> u64 {
                let [a, b, c, d, e, f, g, h, ..] = self.0;
                u64::from_le_bytes([a, b, c, d, e, f, g, h])
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = super::HexError;

            fn from_str(text: &str) -> Result<Self, super::HexError> {
                super::hex::read(text).map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                super::hex::write(&self.0, f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                super::fingerprint::debug(stringify!($name), &self.0, f)
            }
        }
    };
}
pub(super) use hash;

hash!(Digest);
