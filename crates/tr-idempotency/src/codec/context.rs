//! The fields of a record that a seal is bound to, which a writer of the store can change.
#![cfg_attr(not(feature = "encryption"), expect(dead_code, reason = "only seals look at it"))]
use super::Kind;
#[cfg(feature = "encryption")]
use super::Unreadable;
use crate::{
    protocol::{Millis, Phase, Token},
    store::{StoredRecord, StoredState},
};
use tr_core::canonical::{Digest, Key};

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
    /// `None` for a record that has been claimed again since.
    pub(crate) record: Option<&'r StoredRecord>,
}

/// The place and kind as a sealed frame holds them: in front of the sealed bytes, and authenticated
/// with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    kind: Kind,
    /// [`Phase`] as a number; 0 for notes.
    phase: u8,
    mutating: bool,
    by_hand: bool,
    epoch: u64,
    ttl: Millis,
    digest: [u8; 32],
}

/// The length of a context in a frame.
pub(super) const CONTEXT: usize = 51;

/// Stores may round times to seconds.
const ROUNDED: Millis = 1_000;

impl Place {
    /// The place of a claim's end.
    pub(crate) const fn of_claim(claim: &crate::store::ClaimRequest, token: Token) -> Self {
        let (key, digest, mutating) = (claim.key, claim.digest, claim.mutating);
        Self { key, digest, mutating, epoch: token.epoch, by_hand: false }
    }

    /// The place of an end that is recorded by hand.
    pub(crate) const fn by_hand(key: Key, record: &StoredRecord) -> Self {
        let (digest, mutating) = (record.digest, record.mutating);
        Self { key, digest, mutating, epoch: record.token.epoch, by_hand: true }
    }

    pub(super) const fn notes(&self) -> Context {
        let Self { digest, mutating, .. } = *self;
        let digest = *digest.as_bytes();
        let kind = Kind::Notes;
        Context { kind, phase: 0, mutating, by_hand: false, epoch: 0, ttl: 0, digest }
    }

    pub(super) const fn end(&self, phase: Phase, ttl: Millis) -> Context {
        let Self { digest, mutating, by_hand, epoch, .. } = *self;
        let (digest, phase) = (*digest.as_bytes(), number(phase));
        Context { kind: Kind::Body, phase, mutating, by_hand, epoch, ttl, digest }
    }
}

impl<'r> Found<'r> {
    pub(crate) fn notes(key: &'r Key, record: &'r StoredRecord) -> Self {
        Self { key, digest: &record.digest, kind: Kind::Notes, phase: None, record: Some(record) }
    }

    pub(crate) fn body(key: &'r Key, record: &'r StoredRecord) -> Self {
        let phase = Some(record.state.phase());
        Self { key, digest: &record.digest, kind: Kind::Body, phase, record: Some(record) }
    }

    /// The state of a record before it was claimed again.
    pub(crate) fn before(key: &'r Key, digest: &'r Digest, state: &StoredState) -> Self {
        Self { key, digest, kind: Kind::Body, phase: Some(state.phase()), record: None }
    }
}

#[cfg(feature = "encryption")]
impl Context {
    pub(super) fn to_bytes(self) -> [u8; CONTEXT] {
        let mut bytes = [0; CONTEXT];
        bytes[0] = match self.kind {
            Kind::Body => 0,
            Kind::Notes => 1,
        };
        bytes[1] = self.phase;
        bytes[2] = u8::from(self.mutating) | u8::from(self.by_hand) << 1;
        bytes[3..11].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[11..19].copy_from_slice(&self.ttl.to_le_bytes());
        bytes[19..].copy_from_slice(&self.digest);
        bytes
    }

    /// Reads a context that a seal has authenticated: [`to_bytes`](Self::to_bytes) wrote it.
    pub(super) fn of_bytes(bytes: &[u8; CONTEXT]) -> Self {
        let word = |from: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[from..from + 8]);
            u64::from_le_bytes(word)
        };
        let mut digest = [0; 32];
        digest.copy_from_slice(&bytes[19..]);
        Self {
            kind: if bytes[0] == 0 { Kind::Body } else { Kind::Notes },
            phase: bytes[1],
            mutating: bytes[2] & 1 != 0,
            by_hand: bytes[2] & 2 != 0,
            epoch: word(3),
            ttl: word(11),
            digest,
        }
    }

    /// Checks that the bytes are in the record that they were sealed for.
    pub(super) fn fits(&self, found: &Found<'_>) -> Result<(), Unreadable> {
        let phase = found.phase.map_or(0, number);
        let mut rules = vec![
            (self.kind == found.kind, "part of a record"),
            (self.digest == *found.digest.as_bytes(), "params"),
            (self.phase == phase, "state"),
        ];
        if let Some(record) = found.record {
            rules.push((self.mutating == record.mutating, "effect"));
            if self.kind == Kind::Body {
                // Settling by hand makes a claim of its own, above the one that it settles.
                let by_hand = record.token.owner == Token::BY_HAND;
                let epoch = record.token.epoch;
                let fits = if by_hand { self.epoch < epoch } else { self.epoch == epoch };
                rules.push((self.by_hand == by_hand && fits, "run"));
                let lasts = record.until.saturating_sub(record.changed_at);
                rules.push((lasts <= self.ttl.saturating_add(ROUNDED), "expiry"));
            }
        }
        match rules.into_iter().find(|(fits, _)| !fits) {
            Some((_, what)) => Err(Unreadable::Elsewhere(what)),
            None => Ok(()),
        }
    }
}

/// The number of a phase in a frame: from 1, and never reused.
const fn number(phase: Phase) -> u8 {
    match phase {
        Phase::Inflight => 1,
        Phase::Done => 2,
        Phase::FailedNever => 3,
        Phase::FailedWhenAsked => 4,
        Phase::FailedFreely => 5,
        Phase::Cancelled => 6,
        Phase::Unknown => 7,
    }
}
