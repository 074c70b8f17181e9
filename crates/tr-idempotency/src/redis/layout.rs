//! The bytes of a record, as `lua/head.lua` describes and `lua/record.lua` writes them.
use crate::{
    protocol::{ALL, Millis, Phase, Record, State, Token},
    store::{ClaimRequest, StoreError, Stored, StoredState},
};
use tr_core::canonical::{Digest, Key};

/// The version of this layout, and the first byte.
const LAYOUT: u8 = b'1';

/// The length of the head of every record.
pub(super) const HEAD: usize = 100;

/// The record for a claim of a new key, without the epoch and the times, which the server adds: the
/// parts before, between and after these.
pub(super) fn of_claim(claim: &ClaimRequest, unknown: Millis) -> [Vec<u8>; 3] {
    let lead = vec![LAYOUT, b'i', if claim.mutating { b'1' } else { b'0' }, b'0'];

    let (version, runs) = (1_u64, 1_u32);
    let mut by = claim.owner.to_be_bytes().to_vec();
    by.extend(version.to_be_bytes());
    by.extend(runs.to_be_bytes());

    let texts = [Some(claim.tool.as_str()), claim.session.as_deref()];
    let lengths = texts.iter().map(|text| 5 + text.map_or(0, str::len));
    let fixed = lengths.sum::<usize>() + claim.notes.len();
    let mut rest = Vec::with_capacity(HEAD + fixed);
    rest.extend(unknown.to_be_bytes());
    rest.extend(length(fixed));
    rest.extend(claim.digest.as_bytes());
    for text in texts {
        rest.push(u8::from(text.is_some()));
        let text = text.unwrap_or_default();
        rest.extend(length(text.len()));
        rest.extend(text.as_bytes());
    }
    rest.extend(&claim.notes);
    [lead, by, rest]
}

/// A token as a record holds it.
pub(super) fn of_token(token: Token) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&token.epoch.to_be_bytes());
    bytes[8..].copy_from_slice(&token.owner.to_be_bytes());
    bytes
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}

/// One letter for each phase, in their order.
const LETTERS: &[u8; 7] = b"idnwfcu";

/// The letter of a phase.
pub(super) fn letter(phase: Phase) -> &'static [u8] {
    let at = phase as usize - 1;
    &LETTERS[at..=at]
}

/// Reads a record as it stands at `now`; `None` if there is none or it has expired.
///
/// A record that is cut off after its head is read without the parts that follow.
pub(super) fn read(key: &Key, bytes: &[u8], now: Millis) -> Result<Option<Stored>, StoreError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let stored = decode(key, bytes, now).ok_or_else(unreadable)?;
    Ok(stored.at(now))
}

/// Reads a record as it was written.
pub(super) fn decode(key: &Key, bytes: &[u8], now: Millis) -> Option<Stored> {
    let mut rest = Bytes(bytes);
    let [layout, phase, mutating, kept] = rest.array()?;
    if layout != LAYOUT {
        return None;
    }
    let token = Token { epoch: rest.u64()?, owner: rest.u64()? };
    let (version, runs) = (rest.u64()?, rest.u32()?);
    let (claimed_at, changed_at, until) = (rest.u64()?, rest.u64()?, rest.u64()?);
    let (unknown_ttl, fixed) = (rest.u64()?, rest.u32()?);
    let digest = Digest::from_bytes(rest.array()?);
    let (mut fixed, body) = match rest.0 {
        [] => (Bytes(&[]), &[][..]),
        _ => (Bytes(rest.take(fixed)?), rest.0),
    };
    let state = state(phase, (kept == b'1').then(|| body.to_vec()))?;
    let (tool, session) = if fixed.0.is_empty() {
        (String::new(), None)
    } else {
        (fixed.text()?.unwrap_or_default(), fixed.text()?)
    };
    let record = Record {
        digest,
        mutating: mutating == b'1',
        token,
        state,
        version,
        runs,
        claimed_at,
        changed_at,
        until,
        unknown_ttl,
    };
    Some(Stored { key: *key, record, tool, session, notes: fixed.0.to_vec(), now })
}

/// What a record of this layout shows of its call although its state cannot be read.
pub(super) fn without_state(key: &Key, bytes: &[u8]) -> Option<Stored> {
    let mut bytes = bytes.to_vec();
    *bytes.get_mut(1)? = letter(Phase::Inflight)[0];
    decode(key, &bytes, 0)
}

fn state(letter: u8, body: Option<Vec<u8>>) -> Option<StoredState> {
    let phase = ALL[LETTERS.iter().position(|it| *it == letter)?];
    let may_be_bare = matches!(phase, Phase::Inflight | Phase::Cancelled | Phase::Unknown);
    (may_be_bare || body.is_some()).then(|| State::of(phase, body))
}

/// The error for bytes that are not a record.
pub(super) fn unreadable() -> StoreError {
    StoreError::unreadable(UNREADABLE)
}

/// Why bytes are not a record.
pub(super) const UNREADABLE: &str =
    "the value under its key has a layout that this version does not know";

/// The bytes that are left to read.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: u32) -> Option<&'b [u8]> {
        self.0.split_off(..count as usize)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.0.split_off(..N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn text(&mut self) -> Option<Option<String>> {
        let [there] = self.array()?;
        let length = self.u32()?;
        let text = str::from_utf8(self.take(length)?).ok()?;
        Some((there == 1).then(|| text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Ttls;
    use proptest::prelude::*;

    fn key() -> Key {
        Key::from_bytes([7; 32])
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_read_or_refused(bytes: Vec<u8>, now: u64) {
            let _ = read(&key(), &bytes, now);
            let mut ours = vec![LAYOUT];
            ours.extend(&bytes);
            let _ = read(&key(), &ours, now);
        }
    }

    /// As the scripts write it: a call in flight until 50, unknown until 150.
    fn bytes(phase: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![LAYOUT, phase, b'1', b'0'];
        bytes.extend([9_u64, 8, 1].iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend(1_u32.to_be_bytes());
        bytes.extend([40_u64, 40, 50, 100].iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend(u32::try_from(rest.len()).unwrap().to_be_bytes());
        bytes.extend([5; 32]);
        assert_eq!(bytes.len(), HEAD);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn a_record_stands_as_its_lease_and_its_time_say() {
        let bytes = bytes(b'i', &[]);
        let state = |now| read(&key(), &bytes, now).unwrap().map(|stored| stored.record.state);
        assert_eq!(state(49), Some(State::Inflight));
        assert_eq!(state(50), Some(State::Unknown(None)));
        assert_eq!(state(149), Some(State::Unknown(None)));
        assert_eq!(state(150), None);
        assert!(read(&key(), &[], 0).unwrap().is_none());
    }

    #[test]
    fn a_claim_brings_all_of_its_record_but_the_times() {
        let (tool, session, notes) = ("pay".to_owned(), Some("s-1".to_owned()), vec![1, 0, 2]);
        let claim = ClaimRequest {
            key: key(),
            digest: Digest::from_bytes([5; 32]),
            mutating: true,
            again: false,
            corrects: false,
            owner: 8,
            ttls: Ttls { done: 1, failed: 1, inflight: 10, unknown: 100 },
            tool: tool.clone(),
            session: session.clone(),
            notes: notes.clone(),
        };
        let [lead, by, rest] = of_claim(&claim, 100);
        let (epoch, times) = ([0; 8], [0; 24]);
        let bytes = [&lead[..], &epoch, &by, &times, &rest].concat();
        let record = Record {
            digest: claim.digest,
            mutating: true,
            token: Token { epoch: 0, owner: 8 },
            state: State::Inflight,
            version: 1,
            runs: 1,
            claimed_at: 0,
            changed_at: 0,
            until: 0,
            unknown_ttl: 100,
        };
        let stored = Stored { key: key(), record, tool, session, notes, now: 7 };
        assert_eq!(decode(&key(), &bytes, 7), Some(stored));
        assert_eq!(bytes[4..20], of_token(Token { epoch: 0, owner: 8 }));
        assert_eq!((bytes[12..32].len(), bytes[56..].len()), (by.len(), rest.len()));
    }

    #[test]
    fn what_this_version_does_not_know_is_an_error() {
        let newer = [b"2", &bytes(b'i', &[])[1..]].concat();
        let phase = bytes(b'z', &[]);
        let short = &bytes(b'i', &[])[..HEAD - 1];
        for bytes in [&newer[..], &phase, short, &bytes(b'i', &[1, 0, 0, 0, 9])] {
            assert!(read(&key(), bytes, 0).is_err(), "{bytes:?}");
        }
        let shown = |bytes| without_state(&key(), bytes).map(|shown| shown.record.digest);
        assert_eq!(shown(&phase), Some(Digest::from_bytes([5; 32])));
        assert_eq!((shown(&newer), shown(short), shown(b"1")), (None, None, None));
    }
}
