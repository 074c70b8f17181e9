//! Records encrypted at rest: XChaCha20-Poly1305 with a nonce drawn for each.
//!
//! A seal: the key's number (4 bytes), the nonce (24 bytes), the ciphertext with its tag.
use super::Unreadable;
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Generate, Payload},
};
use std::{fmt, sync::Arc};
use tr_core::canonical::{Digest, FingerprintKey};

const NONCE: usize = 24;

/// The secret with which a store's records are encrypted: answers, errors, and who asked.
///
/// What stays readable in the store: the hashed key, the params' digest, the tool's label, states
/// and times. A session is named there by a keyed hash.
///
/// ```
/// use tr_idempotency::{IdempotencyLayer, store::{Memory, SealingKey}};
/// # let (this_years, last_years) = ([7; 32], [6; 32]);
///
/// let key = SealingKey::new(2, this_years).opens(1, last_years);
/// let layer = IdempotencyLayer::builder().store(Memory::new()).sealed_with(key).build()?;
/// # let _: IdempotencyLayer = layer;
/// # Ok::<_, tr_idempotency::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct SealingKey {
    seals: Key,
    opens: Vec<Key>,
    sessions: FingerprintKey,
}

#[derive(Clone)]
struct Key {
    number: u32,
    cipher: Arc<XChaCha20Poly1305>,
}

impl SealingKey {
    /// Seals with `key`: 32 bytes from a good source, kept where secrets are kept. `number` tells
    /// it from keys before and after it.
    #[must_use]
    pub fn new(number: u32, key: [u8; 32]) -> Self {
        let secret = Digest::of_bytes([&b"tr-idempotency sessions"[..], &key].concat());
        let seals = Key::new(number, key);
        Self { seals, opens: Vec::new(), sessions: FingerprintKey::new(*secret.as_bytes()) }
    }

    /// Also opens what was sealed with an earlier key: until the last such record is over. Those
    /// are not found by session any more.
    #[must_use]
    pub fn opens(mut self, number: u32, key: [u8; 32]) -> Self {
        self.opens.push(Key::new(number, key));
        self
    }

    pub(super) fn name(&self, session: &str) -> String {
        self.sessions.fingerprint(session).to_string()
    }

    pub(super) fn seal(&self, bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        let nonce = XNonce::generate();
        let payload = Payload { msg: plain, aad: bound_to };
        let sealed = self.seals.cipher.encrypt(&nonce, payload).expect("records are short enough");
        [&self.seals.number.to_le_bytes()[..], &nonce, &sealed].concat()
    }

    pub(super) fn open(&self, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Unreadable> {
        const SHORT: Unreadable = Unreadable::Corrupt("its seal is cut short");
        let (number, rest) = sealed.split_first_chunk::<4>().ok_or(SHORT)?;
        let (nonce, msg) = rest.split_first_chunk::<NONCE>().ok_or(SHORT)?;
        let number = u32::from_le_bytes(*number);
        let mut keys = std::iter::once(&self.seals).chain(&self.opens);
        let key = keys.find(|key| key.number == number).ok_or(Unreadable::Sealed)?;
        let payload = Payload { msg, aad: bound_to };
        let opened = key.cipher.decrypt(&XNonce::from(*nonce), payload);
        opened.map_err(|_| Unreadable::Corrupt("its seal is broken, or another key's"))
    }
}

impl Key {
    fn new(number: u32, key: [u8; 32]) -> Self {
        Self { number, cipher: Arc::new(XChaCha20Poly1305::new(&key.into())) }
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").field("number", &self.seals.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Frames, Kind, Unreadable};
    use super::*;
    use tr_core::canonical;

    const KEY: canonical::Key = canonical::Key::from_bytes([7; 32]);

    fn frames(seal: SealingKey) -> Frames {
        Frames { seal: Some(seal) }
    }

    #[test]
    fn what_is_sealed_shows_nothing_and_opens_in_its_place_only() {
        let frames = frames(SealingKey::new(1, [1; 32]));
        let secret = b"card 4111 1111 1111 1111".to_vec();
        let sealed = frames.wrap(&KEY, Kind::Body, secret.clone());
        assert!(!sealed.windows(4).any(|part| part == b"4111"));
        assert_ne!(sealed, frames.wrap(&KEY, Kind::Body, secret.clone()), "a nonce each");
        assert_eq!(frames.unwrap(&KEY, Kind::Body, &sealed), Ok(secret));
        let elsewhere = canonical::Key::from_bytes([8; 32]);
        for (key, kind) in [(KEY, Kind::Notes), (elsewhere, Kind::Body)] {
            assert!(matches!(frames.unwrap(&key, kind, &sealed), Err(Unreadable::Corrupt(_))));
        }
    }

    #[test]
    fn earlier_keys_open_and_unknown_ones_are_named() {
        let old = frames(SealingKey::new(1, [1; 32]));
        let sealed = old.wrap(&KEY, Kind::Body, b"x".to_vec());
        let rotated = frames(SealingKey::new(2, [2; 32]).opens(1, [1; 32]));
        assert_eq!(rotated.unwrap(&KEY, Kind::Body, &sealed).as_deref(), Ok(&b"x"[..]));
        let without = frames(SealingKey::new(2, [2; 32]));
        assert_eq!(without.unwrap(&KEY, Kind::Body, &sealed), Err(Unreadable::Sealed));
        assert_eq!(Frames::default().unwrap(&KEY, Kind::Body, &sealed), Err(Unreadable::Sealed));
        let plain = Frames::default().wrap(&KEY, Kind::Body, b"x".to_vec());
        assert_eq!(old.unwrap(&KEY, Kind::Body, &plain).as_deref(), Ok(&b"x"[..]), "from before");
    }

    #[test]
    fn a_session_is_named_by_a_keyed_hash() {
        let name = |key| frames(SealingKey::new(1, [key; 32])).session("s-1");
        assert_eq!(name(1), name(1));
        assert_ne!(name(1), name(2));
        assert_eq!(name(1).len(), 16);
    }
}
