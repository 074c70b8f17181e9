//! The frame around all bytes in a store: a version, flags, a checksum, perhaps a seal.
//!
//! ```text
//! version (1 byte) │ flags (1 byte) │ checksum of the rest (8 bytes) │ payload
//! ```
//!
//! Version 1 is plain, or sealed and bound to its key alone. Version 2 is sealed, and bound to all
//! fields of the record ([`context`](super::context)).
use super::{
    Unreadable,
    context::{Context, Found},
};
#[cfg(feature = "encryption")]
use std::sync::Arc;
#[cfg(feature = "encryption")]
use tr_core::WallClock;
use tr_core::canonical::{Digest, Key};

/// The latest format that this version reads.
pub(super) const VERSION: u8 = 2;

/// The format without a seal.
const PLAIN: u8 = 1;

/// The payload is sealed.
const SEALED: u8 = 1;

const HEAD: usize = 10;

/// What the bytes hold. A sealed body cannot pass for notes, nor for the body of another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Body,
    Notes,
}

/// Writes and reads frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    #[cfg(feature = "encryption")]
    pub(crate) seal: Option<super::SealingKey>,
    /// Decides whether frames of earlier formats are still accepted; the machine's clock if `None`.
    #[cfg(feature = "encryption")]
    pub(crate) wall: Option<Arc<dyn WallClock>>,
}

impl Frames {
    pub(super) fn wrap(&self, key: &Key, context: &Context, payload: Vec<u8>) -> Vec<u8> {
        let (version, flags, payload) = self.seal(key, context, payload);
        let mut bytes = Vec::with_capacity(HEAD + payload.len());
        bytes.extend([version, flags]);
        bytes.extend(checksum(flags, &payload));
        bytes.extend(payload);
        bytes
    }

    pub(super) fn unwrap(&self, found: &Found<'_>, bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let Some((&version, rest)) = bytes.split_first() else {
            return Err(Unreadable::Corrupt("it is empty"));
        };
        match version {
            0 => return Err(Unreadable::Corrupt("format 0 does not exist")),
            1..=VERSION => {}
            newer => return Err(Unreadable::Newer(newer)),
        }
        let Some((&flags, rest)) = rest.split_first() else {
            return Err(Unreadable::Corrupt("it is truncated"));
        };
        let Some((sum, payload)) = rest.split_first_chunk::<8>() else {
            return Err(Unreadable::Corrupt("it is truncated"));
        };
        if *sum != checksum(flags, payload) {
            return Err(Unreadable::Corrupt("its checksum does not match"));
        }
        match (version, flags) {
            (PLAIN, 0) => self.plain(payload),
            (_, SEALED) => self.open(version == PLAIN, found, payload),
            // Written by a later version with the same format number.
            _ => Err(Unreadable::Newer(version.saturating_add(1))),
        }
    }

    #[cfg(feature = "encryption")]
    fn now(&self) -> u64 {
        self.wall.as_ref().map_or_else(|| tr_core::SystemClock.unix_ms(), |wall| wall.unix_ms())
    }

    #[cfg(feature = "encryption")]
    fn seal(&self, key: &Key, context: &Context, payload: Vec<u8>) -> (u8, u8, Vec<u8>) {
        match &self.seal {
            Some(seal) => (VERSION, SEALED, seal.seal(key, context, &payload)),
            None => (PLAIN, 0, payload),
        }
    }

    #[cfg(feature = "encryption")]
    fn plain(&self, payload: &[u8]) -> Result<Vec<u8>, Unreadable> {
        match &self.seal {
            Some(seal) if !seal.opens_plain_at(self.now()) => Err(Unreadable::Plain),
            _ => Ok(payload.to_vec()),
        }
    }

    #[cfg(feature = "encryption")]
    fn open(
        &self,
        unbound: bool,
        found: &Found<'_>,
        payload: &[u8],
    ) -> Result<Vec<u8>, Unreadable> {
        let seal = self.seal.as_ref().ok_or(Unreadable::Sealed)?;
        match unbound {
            false => seal.open(found, payload),
            true if seal.opens_unbound_at(self.now()) => seal.open_unbound(found, payload),
            true => Err(Unreadable::Unbound),
        }
    }

    /// Whether the store's records have to be sealed.
    #[cfg(feature = "encryption")]
    pub(crate) const fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// Checks that a holder of the key wrote a state. A state without a body passes only while
    /// plain frames are accepted.
    #[cfg(feature = "encryption")]
    pub(super) fn prove(
        &self,
        found: &Found<'_>,
        body: Option<&Vec<u8>>,
    ) -> Result<(), Unreadable> {
        match body {
            Some(body) => self.unwrap(found, body).map(drop),
            None => self.plain(&[]).map(drop),
        }
    }

    #[cfg(not(feature = "encryption"))]
    pub(crate) const fn is_sealed(&self) -> bool {
        false
    }

    #[cfg(not(feature = "encryption"))]
    pub(super) fn prove(&self, _: &Found<'_>, _: Option<&Vec<u8>>) -> Result<(), Unreadable> {
        Ok(())
    }

    #[cfg(not(feature = "encryption"))]
    fn seal(&self, _: &Key, _: &Context, payload: Vec<u8>) -> (u8, u8, Vec<u8>) {
        (PLAIN, 0, payload)
    }

    #[cfg(not(feature = "encryption"))]
    fn plain(&self, payload: &[u8]) -> Result<Vec<u8>, Unreadable> {
        Ok(payload.to_vec())
    }

    #[cfg(not(feature = "encryption"))]
    fn open(&self, _: bool, _: &Found<'_>, _: &[u8]) -> Result<Vec<u8>, Unreadable> {
        Err(Unreadable::Sealed)
    }

    /// The session's name in the store.
    #[cfg(feature = "encryption")]
    pub(crate) fn session(&self, session: &str) -> String {
        self.seal.as_ref().map_or_else(|| session.to_owned(), |seal| seal.name(session))
    }

    /// The session's name in the store.
    #[cfg(not(feature = "encryption"))]
    pub(crate) fn session(&self, session: &str) -> String {
        session.to_owned()
    }
}

fn checksum(flags: u8, payload: &[u8]) -> [u8; 8] {
    (Digest::of_bytes(payload).short() ^ u64::from(flags).rotate_right(8)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{codec::Place, protocol::Phase, store::StoredState};

    const KEY: Key = Key::from_bytes([7; 32]);

    fn place() -> Place {
        let digest = Digest::of_bytes(b"params");
        Place { key: KEY, digest, mutating: true, epoch: 1, by_hand: false }
    }

    fn unwrap(frames: &Frames, bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let digest = Digest::of_bytes(b"params");
        let state = StoredState::Done(bytes.to_vec());
        frames.unwrap(&Found::before(&KEY, &digest, &state), bytes)
    }

    #[test]
    fn bytes_come_back_and_every_flipped_bit_shows() {
        let frames = Frames::default();
        for payload in [&b""[..], b"x", &[0; 300]] {
            let bytes = frames.wrap(&KEY, &place().end(Phase::Done, 1), payload.to_vec());
            assert_eq!(unwrap(&frames, &bytes).as_deref(), Ok(payload));
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(unwrap(&frames, &bytes).is_err(), "bit {bit}");
            }
            for cut in 0..bytes.len() {
                assert!(unwrap(&frames, &bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_newer_format_is_told_from_a_corrupt_one() {
        let frames = Frames::default();
        let mut bytes = frames.wrap(&KEY, &place().end(Phase::Done, 1), b"x".to_vec());
        bytes[0] = VERSION + 1;
        assert_eq!(unwrap(&frames, &bytes), Err(Unreadable::Newer(VERSION + 1)));
        assert!(Unreadable::Newer(2).to_string().ends_with("update this program"));
    }
}
