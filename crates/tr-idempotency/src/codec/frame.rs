//! What lies around all bytes in a store: a version, flags, a checksum, perhaps a seal.
//!
//! ```text
//! version (1 byte) │ flags (1 byte) │ checksum of the rest (8 bytes) │ payload
//! ```
use super::Unreadable;
use tr_core::canonical::{Digest, Key};

/// The format that this version writes.
pub(super) const VERSION: u8 = 1;

/// The payload is sealed.
const SEALED: u8 = 1;

const HEAD: usize = 10;

/// What some bytes are for. A sealed body cannot pass for notes, nor for another key's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Body,
    Notes,
}

/// Puts bytes into frames and takes them out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    #[cfg(feature = "encryption")]
    pub(crate) seal: Option<super::SealingKey>,
}

impl Frames {
    pub(crate) fn wrap(&self, key: &Key, kind: Kind, payload: Vec<u8>) -> Vec<u8> {
        let (payload, flags) = self.seal(key, kind, payload);
        let mut bytes = Vec::with_capacity(HEAD + payload.len());
        bytes.extend([VERSION, flags]);
        bytes.extend(checksum(flags, &payload));
        bytes.extend(payload);
        bytes
    }

    pub(crate) fn unwrap(
        &self,
        key: &Key,
        kind: Kind,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Unreadable> {
        let Some((&version, rest)) = bytes.split_first() else {
            return Err(Unreadable::Corrupt("it is empty"));
        };
        match version {
            0 => return Err(Unreadable::Corrupt("no format has version 0")),
            1..=VERSION => {}
            newer => return Err(Unreadable::Newer(newer)),
        }
        let Some((&flags, rest)) = rest.split_first() else {
            return Err(Unreadable::Corrupt("it is cut short"));
        };
        let Some((sum, payload)) = rest.split_first_chunk::<8>() else {
            return Err(Unreadable::Corrupt("it is cut short"));
        };
        if *sum != checksum(flags, payload) {
            return Err(Unreadable::Corrupt("its checksum is another"));
        }
        match flags {
            0 => Ok(payload.to_vec()),
            SEALED => self.open(key, kind, payload),
            // Written by a version that knows more than its number says.
            _ => Err(Unreadable::Newer(version.saturating_add(1))),
        }
    }

    #[cfg(feature = "encryption")]
    fn seal(&self, key: &Key, kind: Kind, payload: Vec<u8>) -> (Vec<u8>, u8) {
        match &self.seal {
            Some(seal) => (seal.seal(&bound(key, kind), &payload), SEALED),
            None => (payload, 0),
        }
    }

    #[cfg(feature = "encryption")]
    fn open(&self, key: &Key, kind: Kind, payload: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let seal = self.seal.as_ref().ok_or(Unreadable::Sealed)?;
        seal.open(&bound(key, kind), payload)
    }

    #[cfg(not(feature = "encryption"))]
    fn seal(&self, _: &Key, _: Kind, payload: Vec<u8>) -> (Vec<u8>, u8) {
        (payload, 0)
    }

    #[cfg(not(feature = "encryption"))]
    fn open(&self, _: &Key, _: Kind, _: &[u8]) -> Result<Vec<u8>, Unreadable> {
        Err(Unreadable::Sealed)
    }

    /// A session as stores may see it.
    #[cfg(feature = "encryption")]
    pub(crate) fn session(&self, session: &str) -> String {
        self.seal.as_ref().map_or_else(|| session.to_owned(), |seal| seal.name(session))
    }

    /// A session as stores may see it.
    #[cfg(not(feature = "encryption"))]
    pub(crate) fn session(&self, session: &str) -> String {
        session.to_owned()
    }
}

/// What a seal is bound to.
#[cfg(feature = "encryption")]
fn bound(key: &Key, kind: Kind) -> [u8; 33] {
    let mut bound = [match kind {
        Kind::Body => 0,
        Kind::Notes => 1,
    }; 33];
    bound[1..].copy_from_slice(key.as_bytes());
    bound
}

fn checksum(flags: u8, payload: &[u8]) -> [u8; 8] {
    (Digest::of_bytes(payload).short() ^ u64::from(flags).rotate_right(8)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key::from_bytes([7; 32]);

    #[test]
    fn bytes_come_back_and_every_flipped_bit_shows() {
        let frames = Frames::default();
        for payload in [&b""[..], b"x", &[0; 300]] {
            let bytes = frames.wrap(&KEY, Kind::Body, payload.to_vec());
            assert_eq!(frames.unwrap(&KEY, Kind::Body, &bytes).as_deref(), Ok(payload));
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(frames.unwrap(&KEY, Kind::Body, &bytes).is_err(), "bit {bit}");
            }
            for cut in 0..bytes.len() {
                assert!(frames.unwrap(&KEY, Kind::Body, &bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_newer_format_is_told_from_a_corrupt_one() {
        let frames = Frames::default();
        let mut bytes = frames.wrap(&KEY, Kind::Body, b"x".to_vec());
        bytes[0] = VERSION + 1;
        assert_eq!(frames.unwrap(&KEY, Kind::Body, &bytes), Err(Unreadable::Newer(VERSION + 1)));
        assert!(Unreadable::Newer(2).to_string().ends_with("update this program"));
    }
}
