//! Names of calls for stores and logs: keys, digests and fingerprints.
//!
//! With the feature `keys` they are computed. Without it they can be stored and compared.
mod digest;
mod fingerprint;
mod hex;
mod key;
#[cfg(feature = "keys")]
mod key_parts;

#[cfg(feature = "keys")]
pub use self::key_parts::{KeyParts, KeyScope, KeySource};
pub use self::{
    digest::{CanonicalForm, Digest},
    fingerprint::{Fingerprint, FingerprintKey},
    hex::HexError,
    key::Key,
};
