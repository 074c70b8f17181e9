//! By what a repeated call is recognised.
use crate::canonical::{Digest, Key};
use std::fmt;

/// By what a repeated call is recognised: its key, and a digest of what it asks for.
///
/// Two calls with one key and different digests are a conflict, never the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DedupeKey {
    /// The key, hashed with all that scopes it.
    pub key: Key,
    /// A digest of the canonical params.
    pub digest: Digest,
}

/// The claim under which a call runs, for a tool that passes it on: to a provider that
/// deduplicates by key, to a database that refuses writes of an older epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FencingToken {
    /// The key, hashed: the same for every run of this call, in every process.
    pub key: Key,
    /// The fencing token: grows with every claim of the key. A run whose claim was lost holds an
    /// older one.
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
