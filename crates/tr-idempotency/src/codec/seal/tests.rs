//! What a seal hides, and where it opens.
use super::super::{Found, Frames, Place, frame::CONTEXT};
use super::*;
use crate::{
    protocol::{Ask, Phase, Token, Ttls},
    store::{StoredRecord, StoredState},
};
use tr_core::canonical;

const KEY: canonical::Key = canonical::Key::from_bytes([7; 32]);
const HOUR: u64 = 3_600_000;
const NOW: u64 = 1_000 * HOUR;

fn frames(seal: SealingKey) -> Frames {
    Frames { seal: Some(seal) }
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
    let ask = Ask {
        digest: digest(),
        mutating: true,
        again: false,
        corrects: false,
        token,
        now: NOW,
        ttls,
    };
    let mut record = StoredRecord::new(&ask);
    record.finalize(token, StoredState::Done(Vec::new()), NOW, HOUR).unwrap();
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
fn what_is_not_sealed_does_not_open() {
    let plain = sealed(&Frames::default(), "forged");
    let opened = opened(&frames(SealingKey::new(1, [1; 32])), &KEY, &record(), &plain);
    assert_eq!(opened, Err(Unreadable::Plain));
}

#[test]
fn a_store_s_names_outlive_the_key_that_made_them() {
    let (first, second) = (SealingKey::new(1, [1; 32]), SealingKey::new(2, [2; 32]));
    let (names, mark) = (first.names(), first.mark(&first.names()));
    assert_ne!(mark, first.mark(&names), "a nonce each");
    let opens = |key: &SealingKey, mark: &[u8]| {
        key.open_mark(mark).map(|(found, is_current)| (found == names, is_current))
    };
    assert_eq!(opens(&first, &mark), Ok((true, true)));
    for (key, mark, why) in [
        (&second, &mark[..], "with the key of number 1, which was not given"),
        (&SealingKey::new(1, [2; 32]), &mark, "with another key than the one given"),
        (&first, b"sealed2", "a later version"),
    ] {
        let error = opens(key, mark).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let rotated = second.clone().opens(1, [1; 32]);
    assert_eq!(opens(&rotated, &mark), Ok((true, false)));
    assert_eq!(opens(&second, &rotated.mark(&names)), Ok((true, true)));
}

#[test]
fn keys_are_wiped() {
    fn is_wiped<T: zeroize::ZeroizeOnDrop>() {}
    is_wiped::<XChaCha20Poly1305>();
    is_wiped::<FingerprintKey>();
    is_wiped::<Names>();
}

#[test]
fn a_session_is_named_by_a_keyed_hash() {
    let name = |key| frames(SealingKey::new(1, [key; 32])).session("s-1");
    assert_eq!(name(1), name(1));
    assert_ne!(name(1), name(2));
    assert_eq!(name(1).len(), 16);
}
