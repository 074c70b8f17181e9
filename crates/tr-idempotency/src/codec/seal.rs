//! Records encrypted at rest: XChaCha20-Poly1305 with a random nonce for each.
//!
//! A seal: the key's number (4 bytes), the nonce (24 bytes), a context, the ciphertext with its tag.
//! The context is readable and authenticated.
use super::{Unreadable, names::Names};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Generate, Payload},
};
use std::sync::Arc;
use tr_core::canonical::{Digest, FingerprintKey};
use zeroize::{Zeroize, Zeroizing};

const NONCE: usize = 24;

/// How the mark of a sealed store begins.
const MARK: &[u8] = b"sealed1";

/// The secret that encrypts a store's responses, errors and request notes.
///
/// The tool's label, states and times stay readable in the store. Keys, digests of params and sessions
/// have other names there, which cannot be found by guessing; equal params have equal names. The encrypted parts are bound to the record's key,
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
/// A store says under which key it was written. A layer with another key, or without one, gets
/// [`Refused`](crate::store::StoreErrorKind::Refused) from every operation, and so does one with a key from
/// a store that was written without.
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
    /// The names in a store that is new.
    names: Names,
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
        let (seals, names) = (Key::new(number, key), Names::of(&key));
        key.zeroize();
        Self { seals, opens: Vec::new(), sessions, names }
    }

    /// Also opens what was sealed with an earlier key; needed until the last such record expires. The store
    /// needs the new key from then on: give it to all processes before they start again. Such records are not found by session any more.
    #[must_use]
    pub fn opens(mut self, number: u32, mut key: [u8; 32]) -> Self {
        self.opens.push(Key::new(number, key));
        key.zeroize();
        self
    }

    /// The names in a store that is new: from the key that seals.
    pub(crate) fn names(&self) -> Names {
        self.names.clone()
    }

    /// The mark of a store with these names, for holders of the key that seals.
    pub(crate) fn mark(&self, names: &Names) -> Vec<u8> {
        [MARK, &self.seal(&[], MARK, &names.0)].concat()
    }

    /// The names in a store with this mark, and whether the key that seals opens it; or why it does not open.
    pub(crate) fn open_mark(&self, mark: &[u8]) -> Result<(Names, bool), String> {
        let newer = "a later version says how its records are encrypted: update this program";
        let sealed = mark.strip_prefix(MARK).ok_or(newer)?;
        let number = sealed.first_chunk().map(|number| u32::from_le_bytes(*number)).ok_or(newer)?;
        let opened = self.open(sealed, 0, |_| MARK.to_vec()).map_err(|why| match why {
            Unreadable::Sealed => format!(
                "its records are encrypted with the key of number {number}, which was not given: \
                 give that key"
            ),
            _ => "its records are encrypted with another key than the one given: give the key \
                  with which they were written"
                .to_owned(),
        })?;
        let opened = Zeroizing::new(opened.1);
        let names = (**opened).try_into().map_err(|_| newer)?;
        Ok((Names(names), number == self.seals.number))
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

tr_core::debug_parts! { SealingKey, |it| number = it.seals.number }

#[cfg(test)]
mod tests;
