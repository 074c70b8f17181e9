//! Records encrypted at rest: XChaCha20-Poly1305 with a random nonce for each.
//!
//! A seal: the key's number (4 bytes), the nonce (24 bytes), the context (51 bytes), the ciphertext
//! with its tag. The context is readable and authenticated.
use super::{
    Kind, Unreadable,
    context::{CONTEXT, Context, Found},
};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Generate, Payload},
};
use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tr_core::canonical::{self, Digest, FingerprintKey};
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
    /// Unix milliseconds until which frames of earlier formats are accepted.
    plain_until: u64,
    unbound_until: u64,
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
        Self { seals, opens: Vec::new(), sessions, plain_until: 0, unbound_until: 0 }
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

    /// Also accepts the first sealed format, which bound responses to nothing but their key, until
    /// `until`. Until then a writer of the store can put a response of that format under another
    /// state, run or time of the same key.
    #[must_use]
    pub fn opens_unbound_until(mut self, until: SystemTime) -> Self {
        self.unbound_until = unix_ms(until);
        self
    }

    pub(super) const fn opens_plain_at(&self, now: u64) -> bool {
        now < self.plain_until
    }

    pub(super) const fn opens_unbound_at(&self, now: u64) -> bool {
        now < self.unbound_until
    }

    pub(super) fn name(&self, session: &str) -> String {
        self.sessions.fingerprint(session).to_string()
    }

    pub(super) fn seal(&self, key: &canonical::Key, context: &Context, plain: &[u8]) -> Vec<u8> {
        let (nonce, context) = (XNonce::generate(), context.to_bytes());
        let payload = Payload { msg: plain, aad: &bound(key, &context) };
        let sealed = self.seals.cipher.encrypt(&nonce, payload).expect("records are short enough");
        [&self.seals.number.to_le_bytes()[..], &nonce, &context, &sealed].concat()
    }

    pub(super) fn open(&self, found: &Found<'_>, sealed: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let (key, nonce, rest) = self.split(sealed)?;
        let (context, msg) = rest.split_first_chunk::<CONTEXT>().ok_or(SHORT)?;
        let opened = key.open(&nonce, Payload { msg, aad: &bound(found.key, context) })?;
        Context::of_bytes(context).fits(found)?;
        Ok(opened)
    }

    /// Opens what was sealed in the first format.
    pub(super) fn open_unbound(
        &self,
        found: &Found<'_>,
        sealed: &[u8],
    ) -> Result<Vec<u8>, Unreadable> {
        let (key, nonce, msg) = self.split(sealed)?;
        let kind = match found.kind {
            Kind::Body => 0,
            Kind::Notes => 1,
        };
        let aad = [&[kind], &found.key.as_bytes()[..]].concat();
        key.open(&nonce, Payload { msg, aad: &aad })
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

/// What a seal of the second format is bound to.
fn bound(key: &canonical::Key, context: &[u8; CONTEXT]) -> Vec<u8> {
    [&b"tr-seal2"[..], key.as_bytes(), context].concat()
}

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
mod tests {
    use super::super::{Frames, Place};
    use super::*;
    use crate::{
        protocol::{Ask, Phase, Token, Ttls},
        store::{StoredRecord, StoredState},
    };
    use std::time::Duration;
    use tr_core::SetClock;

    const KEY: canonical::Key = canonical::Key::from_bytes([7; 32]);
    const HOUR: u64 = 3_600_000;
    const NOW: u64 = 1_000 * HOUR;

    fn frames(seal: SealingKey) -> Frames {
        Frames { seal: Some(seal), wall: Some(Arc::new(SetClock::at(NOW))) }
    }

    fn digest() -> Digest {
        Digest::of_bytes(b"params")
    }

    fn place() -> Place {
        Place { key: KEY, digest: digest(), mutating: true, epoch: 5, by_hand: false }
    }

    /// A record of that place, done, and kept for an hour.
    fn record() -> StoredRecord {
        let ttls = Ttls { done: HOUR, failed: HOUR, inflight: HOUR, unknown: HOUR };
        let token = Token { epoch: 5, owner: 9 };
        let ask = Ask { digest: digest(), mutating: true, again: false, token, now: NOW, ttls };
        let mut record = StoredRecord::new(&ask);
        record.finalise(token, StoredState::Done(Vec::new()), NOW, HOUR).unwrap();
        record
    }

    fn sealed(frames: &Frames, text: &str) -> Vec<u8> {
        frames.wrap(&KEY, &place().end(Phase::Done, HOUR), text.into())
    }

    fn opened(
        frames: &Frames,
        key: &canonical::Key,
        record: &StoredRecord,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Unreadable> {
        frames.unwrap(&Found::body(key, record), bytes)
    }

    #[test]
    fn what_is_sealed_shows_nothing_and_opens_in_its_place_only() {
        let frames = frames(SealingKey::new(1, [1; 32]));
        let secret = "card 4111 1111 1111 1111";
        let bytes = sealed(&frames, secret);
        assert!(!bytes.windows(4).any(|part| part == b"4111"));
        assert_ne!(bytes, sealed(&frames, secret), "a nonce each");
        assert_eq!(opened(&frames, &KEY, &record(), &bytes).as_deref(), Ok(secret.as_bytes()));
        let elsewhere = canonical::Key::from_bytes([8; 32]);
        let broken = opened(&frames, &elsewhere, &record(), &bytes);
        assert!(matches!(broken, Err(Unreadable::Corrupt(_))), "{broken:?}");
        let notes = frames.unwrap(&Found::notes(&KEY, &record()), &bytes);
        assert_eq!(notes, Err(Unreadable::Elsewhere("part of a record")));
    }

    /// A writer of the store changes a field of a record, or puts its response into another.
    #[test]
    fn a_seal_is_bound_to_state_run_params_effect_and_expiry() {
        let frames = frames(SealingKey::new(1, [1; 32]));
        let bytes = sealed(&frames, "paid");
        type Change = fn(&mut StoredRecord);
        let attacks: [(&str, Change); 8] = [
            ("params", |it| it.digest = Digest::of_bytes(b"other params")),
            ("state", |it| it.state = StoredState::Unknown(Some(Vec::new()))),
            ("state", |it| {
                it.state = StoredState::Failed(Vec::new(), crate::protocol::Again::Freely);
            }),
            ("effect", |it| it.mutating = false),
            ("run", |it| it.token.epoch = 6),
            ("run", |it| it.token = Token { epoch: 6, owner: Token::BY_HAND }),
            ("run", |it| it.token.epoch = 4),
            ("expiry", |it| it.until += HOUR),
        ];
        for (what, change) in attacks {
            let mut record = record();
            change(&mut record);
            assert_eq!(opened(&frames, &KEY, &record, &bytes), Err(Unreadable::Elsewhere(what)));
        }
    }

    #[test]
    fn what_the_seal_says_cannot_be_changed_with_the_record() {
        let frames = frames(SealingKey::new(1, [1; 32]));
        let bytes = sealed(&frames, "paid");
        for at in 0..CONTEXT {
            let mut bytes = bytes.clone();
            bytes[10 + 4 + NONCE + at] ^= 1;
            // As a writer of the store would, with a matching checksum.
            let sum = Digest::of_bytes(&bytes[10..]).short() ^ 1_u64.rotate_right(8);
            bytes[2..10].copy_from_slice(&sum.to_le_bytes());
            let broken = opened(&frames, &KEY, &record(), &bytes);
            assert_eq!(
                broken,
                Err(Unreadable::Corrupt(
                    "its seal does not verify: it was changed, or sealed with another key of this number"
                ))
            );
        }
    }

    #[test]
    fn what_is_settled_by_hand_is_told_from_what_a_run_recorded() {
        let frames = frames(SealingKey::new(1, [1; 32]));
        let place = Place { by_hand: true, ..place() };
        let bytes = frames.wrap(&KEY, &place.end(Phase::Done, HOUR), b"x".to_vec());
        let mut record = record();
        let of_a_run = opened(&frames, &KEY, &record, &bytes);
        assert_eq!(of_a_run, Err(Unreadable::Elsewhere("run")));
        record.token = Token { epoch: 6, owner: Token::BY_HAND };
        assert_eq!(opened(&frames, &KEY, &record, &bytes).as_deref(), Ok(&b"x"[..]));
    }

    #[test]
    fn earlier_keys_open_and_unknown_ones_are_named() {
        let old = frames(SealingKey::new(1, [1; 32]));
        let bytes = sealed(&old, "x");
        let rotated = frames(SealingKey::new(2, [2; 32]).opens(1, [1; 32]));
        assert_eq!(opened(&rotated, &KEY, &record(), &bytes).as_deref(), Ok(&b"x"[..]));
        let without = frames(SealingKey::new(2, [2; 32]));
        assert_eq!(opened(&without, &KEY, &record(), &bytes), Err(Unreadable::Sealed));
        assert_eq!(opened(&Frames::default(), &KEY, &record(), &bytes), Err(Unreadable::Sealed));
    }

    #[test]
    fn what_is_not_sealed_opens_until_then_and_no_longer() {
        let plain = sealed(&Frames::default(), "forged");
        let until = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        let key = || SealingKey::new(1, [1; 32]);
        let open = |key| opened(&frames(key), &KEY, &record(), &plain);
        assert_eq!(open(key()), Err(Unreadable::Plain));
        assert_eq!(open(key().opens_plain_until(until(NOW))), Err(Unreadable::Plain));
        let opens = open(key().opens_plain_until(until(NOW + 1)));
        assert_eq!(opens.as_deref(), Ok(&b"forged"[..]));
    }

    /// A frame as the first version sealed it, with key number 1 of `[1; 32]`, for [`KEY`].
    fn of_the_first_format() -> Vec<u8> {
        let aad = [&[0], &KEY.as_bytes()[..]].concat();
        let key = Key::new(1, [1; 32]);
        let nonce = XNonce::from([3; NONCE]);
        let sealed = key.cipher.encrypt(&nonce, Payload { msg: b"old", aad: &aad }).unwrap();
        let payload = [&1_u32.to_le_bytes()[..], &nonce, &sealed].concat();
        let sum = Digest::of_bytes(&payload).short() ^ 1_u64.rotate_right(8);
        [&[1, 1], &sum.to_le_bytes()[..], &payload].concat()
    }

    #[test]
    fn the_first_format_opens_until_then_and_is_named_afterwards() {
        let bytes = of_the_first_format();
        let until = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        let key = || SealingKey::new(1, [1; 32]);
        let open = |key| opened(&frames(key), &KEY, &record(), &bytes);
        assert_eq!(open(key()), Err(Unreadable::Unbound));
        assert_eq!(open(key().opens_unbound_until(until(NOW))), Err(Unreadable::Unbound));
        let opens = open(key().opens_unbound_until(until(NOW + 1)));
        assert_eq!(opens.as_deref(), Ok(&b"old"[..]));
        let says = Unreadable::Unbound.to_string();
        assert!(says.contains("opens_unbound_until"), "{says}");
    }

    #[test]
    fn keys_are_wiped() {
        fn is_wiped<T: zeroize::ZeroizeOnDrop>() {}
        is_wiped::<XChaCha20Poly1305>();
        is_wiped::<FingerprintKey>();
    }

    #[test]
    fn a_session_is_named_by_a_keyed_hash() {
        let name = |key| frames(SealingKey::new(1, [key; 32])).session("s-1");
        assert_eq!(name(1), name(1));
        assert_ne!(name(1), name(2));
        assert_eq!(name(1).len(), 16);
    }
}
