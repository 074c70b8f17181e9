//! By what a repeated call is recognised.
use crate::canonical::{Digest, Key};

/// By what a repeated call is recognised: its key, and a digest of what it asks for.
///
/// Two calls with one key and different digests are a conflict, never the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    /// The key, hashed with all that scopes it.
    pub key: Key,
    /// A digest of the canonical params.
    pub digest: Digest,
}
