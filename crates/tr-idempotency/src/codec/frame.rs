//! The frame around all bytes in a store: a version, flags, a checksum, perhaps a seal.
//!
//! ```text
//! version (1 byte) │ flags (1 byte) │ checksum of the rest (8 bytes) │ payload
//! ```
//!
//! Version 1 is plain. Version 2 is sealed, and bound to all fields of the record: its [`Context`],
//! which a writer of the store could change.
use super::{SealingKey, Unreadable, VERSION};
use crate::protocol::{Millis, Phase, Record, State, Token};
use tr_core::canonical::{Digest, Key};

/// The format without a seal.
const PLAIN: u8 = 1;

/// The payload is sealed.
const SEALED: u8 = 1;

const HEAD: usize = 10;

/// What the bytes hold. A sealed body cannot pass for notes, nor for the body of another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Body = 0,
    Notes = 1,
}

/// The call and the run that the bytes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) key: Key,
    pub(crate) digest: Digest,
    /// Whether a second run may do harm.
    pub(crate) mutating: bool,
    /// The epoch of the claim under which it ran.
    pub(crate) epoch: u64,
    /// Whether a probe or an operator recorded how it ended.
    pub(crate) by_hand: bool,
}

/// The record whose bytes are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'r> {
    pub(crate) key: &'r Key,
    pub(crate) digest: &'r Digest,
    pub(crate) kind: Kind,
    pub(crate) phase: Option<Phase>,
    /// What is kept of the call.
    pub(crate) body: Option<&'r Vec<u8>>,
    /// `None` for a record that has been claimed again since.
    pub(crate) record: Option<&'r Record<Vec<u8>, Vec<u8>>>,
}

/// The length of a [`Context`].
pub(super) const CONTEXT: usize = 51;

/// The place and kind as a sealed frame holds them, in front of the sealed bytes and authenticated
/// with them:
///
/// ```text
/// kind (1 byte) │ phase as a number, 0 for notes (1) │ flags (1) │ epoch (8) │ time to live (8) │ digest (32)
/// ```
type Context = [u8; CONTEXT];

/// The flags of a [`Context`].
const MUTATING: u8 = 1;
const BY_HAND: u8 = 2;

/// Stores may round times to seconds.
const ROUNDED: Millis = 1_000;

impl Place {
    /// The place of an end that is recorded by hand.
    pub(crate) const fn by_hand(key: Key, record: &Record<Vec<u8>, Vec<u8>>) -> Self {
        let (digest, mutating) = (record.digest, record.mutating);
        Self { key, digest, mutating, epoch: record.token.epoch, by_hand: true }
    }

    pub(super) fn notes(&self) -> Context {
        self.context(Kind::Notes, 0, 0)
    }

    pub(super) fn end(&self, phase: Phase, ttl: Millis) -> Context {
        self.context(Kind::Body, phase as u8, ttl)
    }

    fn context(&self, kind: Kind, phase: u8, ttl: Millis) -> Context {
        let by_hand = if self.by_hand { BY_HAND } else { 0 };
        let mut bytes = [0; CONTEXT];
        bytes[..3].copy_from_slice(&[kind as u8, phase, u8::from(self.mutating) | by_hand]);
        bytes[3..11].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[11..19].copy_from_slice(&ttl.to_le_bytes());
        bytes[19..].copy_from_slice(self.digest.as_bytes());
        bytes
    }
}

impl<'r> Found<'r> {
    pub(crate) fn notes(key: &'r Key, record: &'r Record<Vec<u8>, Vec<u8>>) -> Self {
        Self { kind: Kind::Notes, phase: None, body: None, ..Self::body(key, record) }
    }

    pub(crate) fn body(key: &'r Key, record: &'r Record<Vec<u8>, Vec<u8>>) -> Self {
        Self { record: Some(record), ..Self::before(key, &record.digest, &record.state) }
    }

    /// The state of a record before it was claimed again.
    pub(crate) fn before(
        key: &'r Key,
        digest: &'r Digest,
        state: &'r State<Vec<u8>, Vec<u8>>,
    ) -> Self {
        let (phase, body) = (Some(state.phase()), state.body());
        Self { key, digest, kind: Kind::Body, phase, body, record: None }
    }
}

/// Checks that bytes with this context, which a seal has authenticated, are in the record that they
/// were sealed for.
fn check_place(context: &[u8], found: &Found<'_>) -> Result<(), Unreadable> {
    let word = |at: usize| context[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let flag = |flag: u8| context[2] & flag != 0;
    let mut rules = vec![
        (context[0] == found.kind as u8, "part of a record"),
        (context[19..] == *found.digest.as_bytes(), "params"),
        (context[1] == found.phase.map_or(0, |phase| phase as u8), "state"),
    ];
    if let Some(record) = found.record {
        rules.push((flag(MUTATING) == record.mutating, "effect"));
        if found.kind == Kind::Body {
            // Settling by hand makes a claim of its own, above the one that it settles.
            let by_hand = record.token.owner == Token::BY_HAND;
            let (sealed, epoch) = (word(3), record.token.epoch);
            let fits = if by_hand { sealed < epoch } else { sealed == epoch };
            rules.push((flag(BY_HAND) == by_hand && fits, "run"));
            let lasts = record.until.saturating_sub(record.changed_at);
            rules.push((lasts <= word(11).saturating_add(ROUNDED), "expiry"));
        }
    }
    match rules.into_iter().find(|(fits, _)| !fits) {
        Some((_, what)) => Err(Unreadable::Elsewhere(what)),
        None => Ok(()),
    }
}

/// Writes and reads frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    pub(crate) seal: Option<SealingKey>,
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
        let Some((&[flags, ref sum @ ..], payload)) = rest.split_first_chunk::<9>() else {
            return Err(Unreadable::Corrupt("it is truncated"));
        };
        if *sum != checksum(flags, payload) {
            return Err(Unreadable::Corrupt("its checksum does not match"));
        }
        match (version, flags) {
            (PLAIN, 0) => self.plain(payload),
            (VERSION, SEALED) => self.open(found, payload),
            // Written by a later version with the same format number.
            _ => Err(Unreadable::Newer(version.saturating_add(1))),
        }
    }

    fn seal(&self, key: &Key, context: &Context, payload: Vec<u8>) -> (u8, u8, Vec<u8>) {
        match &self.seal {
            Some(seal) => (VERSION, SEALED, seal.seal(context, &bound(key, context), &payload)),
            None => (PLAIN, 0, payload),
        }
    }

    fn plain(&self, payload: &[u8]) -> Result<Vec<u8>, Unreadable> {
        if self.is_sealed() { Err(Unreadable::Plain) } else { Ok(payload.to_vec()) }
    }

    fn open(&self, found: &Found<'_>, payload: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let seal = self.seal.as_ref().ok_or(Unreadable::Sealed)?;
        let bound = |context: &[u8]| bound(found.key, context);
        let (context, opened) = seal.open(payload, CONTEXT, bound)?;
        check_place(context, found)?;
        Ok(opened)
    }

    /// Whether the store's records have to be sealed.
    pub(crate) const fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// Checks that a holder of the key wrote a state; one without a body has no seal.
    pub(super) fn prove(&self, found: &Found<'_>) -> Result<(), Unreadable> {
        if cfg!(not(feature = "encryption")) {
            return Ok(()); // No store can be sealed.
        }
        match found.body {
            Some(body) => self.unwrap(found, body).map(drop),
            None => self.plain(&[]).map(drop),
        }
    }

    /// The session's name in the store.
    pub(crate) fn session(&self, session: &str) -> String {
        self.seal.as_ref().map_or_else(|| session.to_owned(), |seal| seal.name(session))
    }
}

/// What a seal is bound to.
fn bound(key: &Key, context: &[u8]) -> Vec<u8> {
    [&b"tr-seal2"[..], key.as_bytes(), context].concat()
}

fn checksum(flags: u8, payload: &[u8]) -> [u8; 8] {
    (Digest::of_bytes(payload).short() ^ u64::from(flags).rotate_right(8)).to_le_bytes()
}

#[cfg(test)]
mod tests;
