//! The identity of a call for deduplication, and its fencing token.
use crate::keys::{Digest, Key};
#[cfg(feature = "keys")]
use crate::keys::{KeyParts, KeyScope, KeySource};
use std::fmt;

/// The identity of a call for deduplication: its key and a digest of its params.
///
/// Two calls with one key and different digests are a conflict, never the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DedupeKey {
    /// The hash of the key and its scope.
    pub key: Key,
    /// A digest of the canonical params.
    pub digest: Digest,
}

#[cfg(feature = "keys")]
impl DedupeKey {
    /// The key of a request of one's own: the caller's `key`, which holds among all requests under `name`,
    /// and a digest of the bytes that two requests with this key must have in common.
    ///
    /// Callers that must not share records need different keys: join the caller's name to the key.
    ///
    /// ```
    /// use tr_policy::DedupeKey;
    ///
    /// let key = DedupeKey::of("transfers", "order-42", "500 EUR to Ada");
    /// let other = DedupeKey::of("transfers", "order-42", "900 EUR to Ada");
    /// assert!(key.key == other.key && key.digest != other.digest, "a conflict");
    /// ```
    #[must_use]
    pub fn of(name: &str, key: &str, params: impl AsRef<[u8]>) -> Self {
        let parts = KeyParts {
            scope: KeyScope::Instance(name),
            namespace: None,
            tool: name,
            action: None,
            source: KeySource::Caller(key),
            step: None,
        };
        Self { key: Key::derive(&parts), digest: Digest::of_bytes(params) }
    }
}

/// The claim under which a call runs. A tool passes it to a provider that deduplicates by key, or to
/// a database that rejects writes of an older epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FencingToken {
    /// The key, hashed: the same for every run of this call, in every process.
    pub key: Key,
    /// Grows with every claim of the key. A run that has lost its claim has an older one.
    pub epoch: u64,
}

impl FencingToken {
    /// The key for the provider: 64 hexadecimal digits.
    #[must_use]
    pub fn provider_key(&self) -> String {
        self.key.to_string()
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({:?}, {})", self.key, self.epoch)
    }
}
