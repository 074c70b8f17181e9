//! Records encrypted at rest: XChaCha20-Poly1305 with a random nonce for each.
//!
//! A seal: the key's number (4 bytes), the nonce (24 bytes), a context, the ciphertext with its tag.
//! The context is readable and authenticated.
use super::Unreadable;
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Generate, Payload},
};
use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tr_core::canonical::{Digest, FingerprintKey};
use zeroize::{Zeroize, Zeroizing};

const NONCE: usize = 24;

/// The secret that encrypts a store's responses, errors and request notes.
///
/// The hashed key, the params' digest, the tool's label, states and times stay readable in the
/// store, and a keyed hash names the session. The encrypted parts are bound to the record's key,
/// digest, effect, state, run and time to live: in another record they do not open. Every state
/// that ends a call carries a seal, also the state that it did not run. A mutating call is
/// replayed, or runs again after a record that allows it, only if that record's seal opens.
///
/// Keys are wiped from memory when the last clone is dropped.
///
/// # What it does not promise
///
/// A writer of the store can
///
/// - delete a record, or restore an earlier one before it expires: then the call runs again, or is
///   answered as it was then. The claim's epoch, as a fencing token, lets the tool's target refuse
///   an older run.
/// - change the fields that the store itself reads, which cannot be sealed: of a call in flight,
///   its owner, epoch, lease and times; versions and numbers of runs; the tool's label and the
///   session's hash, by which operators list and flush; and the expiry of a record. So it can delay
///   calls, have them refused as in flight, in conflict or of unknown outcome, and hide them from
///   operators.
///
/// Restrict who may write to the store.
///
/// ```
/// use tr_idempotency::{IdempotencyLayer, store::{Memory, SealingKey}};
/// # let (this_years, last_years) = ([7; 32], [6; 32]);
///
/// let key = SealingKey::new(2, this_years).opens(1, last_years);
/// let layer = IdempotencyLayer::builder().store(Memory::new()).sealed_with(key).build()?;
/// # Ok::<_, tr_idempotency::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct SealingKey {
    seals: Key,
    opens: Vec<Key>,
    sessions: FingerprintKey,
    /// Unix milliseconds until which plain frames are accepted.
    plain_until: u64,
}

#[derive(Clone)]
struct Key {
    number: u32,
    /// Wiped on drop, by the crate's feature `zeroize`.
    cipher: Arc<XChaCha20Poly1305>,
}

impl SealingKey {
    /// Seals with `key`: 32 random bytes from a secret store. `number` distinguishes it from other
    /// keys.
    #[must_use]
    pub fn new(number: u32, mut key: [u8; 32]) -> Self {
        let named = Zeroizing::new([&b"tr-idempotency sessions"[..], &key].concat());
        let mut secret = *Digest::of_bytes(&*named).as_bytes();
        let sessions = FingerprintKey::new(secret);
        secret.zeroize();
        let seals = Key::new(number, key);
        key.zeroize();
        Self { seals, opens: Vec::new(), sessions, plain_until: 0 }
    }

    /// Also opens what was sealed with an earlier key; needed until the last such record expires.
    /// Such records are not found by session any more.
    #[must_use]
    pub fn opens(mut self, number: u32, mut key: [u8; 32]) -> Self {
        self.opens.push(Key::new(number, key));
        key.zeroize();
        self
    }

    /// Also accepts plain records until `until`: for a store that is sealed from now on. The last
    /// plain record expires after the longest time to live of the layer and the tools, 24 h by
    /// default. Until then a writer of the store can forge responses. A mutating call whose record
    /// is refused is not run again.
    #[must_use]
    pub fn opens_plain_until(mut self, until: SystemTime) -> Self {
        self.plain_until = unix_ms(until);
        self
    }

    pub(super) const fn opens_plain_at(&self, now: u64) -> bool {
        now < self.plain_until
    }

    pub(super) fn name(&self, session: &str) -> String {
        self.sessions.fingerprint(session).to_string()
    }

    /// Encrypts `plain`, and authenticates `bound` with it. The context is put in front, readable.
    pub(super) fn seal(&self, context: &[u8], bound: &[u8], plain: &[u8]) -> Vec<u8> {
        let nonce = XNonce::generate();
        let payload = Payload { msg: plain, aad: bound };
        let sealed = self.seals.cipher.encrypt(&nonce, payload).expect("records are short enough");
        [&self.seals.number.to_le_bytes()[..], &nonce, context, &sealed].concat()
    }

    /// Decrypts what was sealed with a context of this length, and returns the context too. `bound`
    /// says by the context what was authenticated.
    pub(super) fn open<'s>(
        &self,
        sealed: &'s [u8],
        context: usize,
        bound: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<(&'s [u8], Vec<u8>), Unreadable> {
        let (key, nonce, rest) = self.split(sealed)?;
        let (context, msg) = rest.split_at_checked(context).ok_or(SHORT)?;
        let opened = key.open(&nonce, Payload { msg, aad: &bound(context) })?;
        Ok((context, opened))
    }

    /// The key of this number, the nonce, and the rest.
    fn split<'s>(&self, sealed: &'s [u8]) -> Result<(&Key, XNonce, &'s [u8]), Unreadable> {
        let (number, rest) = sealed.split_first_chunk::<4>().ok_or(SHORT)?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE>().ok_or(SHORT)?;
        let number = u32::from_le_bytes(*number);
        let mut keys = std::iter::once(&self.seals).chain(&self.opens);
        let key = keys.find(|key| key.number == number).ok_or(Unreadable::Sealed)?;
        Ok((key, XNonce::from(*nonce), rest))
    }
}

const SHORT: Unreadable = Unreadable::Corrupt("its seal is truncated");

fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Key {
    fn new(number: u32, secret: [u8; 32]) -> Self {
        let mut secret = chacha20poly1305::Key::from(secret);
        let cipher = Arc::new(XChaCha20Poly1305::new(&secret));
        secret.zeroize();
        Self { number, cipher }
    }

    fn open(&self, nonce: &XNonce, payload: Payload<'_, '_>) -> Result<Vec<u8>, Unreadable> {
        let opened = self.cipher.decrypt(nonce, payload);
        opened.map_err(|_| Unreadable::Corrupt("its seal does not verify: it was changed, or sealed with another key of this number"))
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").field("number", &self.seals.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
