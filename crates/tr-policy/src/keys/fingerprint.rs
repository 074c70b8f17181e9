//! Names for keys and digests that are safe to log.
use super::hex;
use std::fmt;
#[cfg(feature = "keys")]
use std::{
    hash::{BuildHasher, RandomState},
    sync::OnceLock,
};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The secret that makes fingerprints.
///
/// Params have little entropy, so a plain hash of them in a log can be reversed by guessing. A
/// keyed hash cannot, without the key.
///
/// ```
/// use tr_policy::keys::FingerprintKey;
///
/// let logs = FingerprintKey::new([7; 32]);
/// assert_eq!(logs.fingerprint("order-42").to_string().len(), 16);
/// assert_eq!(logs.fingerprint("order-42"), logs.fingerprint("order-42"));
/// assert_ne!(logs.fingerprint("order-42"), FingerprintKey::of_process().fingerprint("order-42"));
/// ```
///
/// The key is wiped from memory when it is dropped.
#[derive(Clone)]
pub struct FingerprintKey([u8; 32]);

/// A keyed hash, shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 8]);

impl FingerprintKey {
    /// Uses a key of your own, to compare the logs of several processes.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }
}

#[cfg(feature = "keys")]
impl FingerprintKey {
    /// A key drawn once per process.
    #[must_use]
    pub fn of_process() -> &'static Self {
        static KEY: OnceLock<FingerprintKey> = OnceLock::new();
        KEY.get_or_init(|| {
            // std seeds this with 128 bits from the system: enough for a secret that only has
            // to outlive the process's logs, and no dependency.
            let random = RandomState::new();
            let mut seed = blake3::Hasher::new();
            for word in 0..4_u64 {
                seed.update(&random.hash_one(word).to_le_bytes());
            }
            Self(seed.finalize().into())
        })
    }

    /// Names `bytes`.
    #[must_use]
    pub fn fingerprint(&self, bytes: impl AsRef<[u8]>) -> Fingerprint {
        let hash = blake3::keyed_hash(&self.0, bytes.as_ref());
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        Fingerprint([a, b, c, d, e, f, g, h])
    }
}

impl Drop for FingerprintKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for FingerprintKey {}

impl Fingerprint {
    /// All 8 bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0
    }
}

crate::debug_parts! { FingerprintKey, |_it|  }

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Writes the fingerprint of a `name` for [`Debug`](fmt::Debug).
#[cfg(feature = "keys")]
pub(super) fn debug(name: &str, bytes: &[u8; 32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{name}({})", FingerprintKey::of_process().fingerprint(bytes))
}

/// Without a hash there is no fingerprint, and the bytes themselves are not for logs.
#[cfg(not(feature = "keys"))]
pub(super) fn debug(name: &str, _: &[u8; 32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name).finish_non_exhaustive()
}
