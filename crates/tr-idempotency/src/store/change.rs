//! The changes of a record after its claim.
use super::{End, StoredRecord};
use crate::protocol::{Millis, Token};
use std::borrow::Cow;

/// A change of the record of one key. It is idempotent: sent again, it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'c> {
    /// Prolongs the lease of this claim to so many milliseconds from now.
    Renew(Token, Millis),
    /// Deletes a claim under which the call was not started. It is identified by its owner alone,
    /// since a process that lost the reply to its claim does not know the epoch.
    Release(u64),
    /// Records how the call ended under this claim. A late end is accepted while no other process
    /// has claimed or settled the call.
    Finalise(Token, Cow<'c, End>),
    /// Records how a call of unknown outcome ended, if it is that of this claim, or whichever it is.
    /// The record passes to [`Token::BY_HAND`] at a higher epoch, so that its former owner has lost
    /// the claim.
    Settle(Option<Token>, Cow<'c, End>),
}

/// What the store does with the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It stays as it is; whether that is what was asked for.
    Not(bool),
    /// It writes the record.
    Written,
    /// It deletes the record.
    Deleted,
}

impl Change<'_> {
    /// Applies the change to the record as it stands at the store's time, for stores that are
    /// written in Rust. `epoch` is above all earlier ones of the key.
    pub fn apply(self, record: &mut StoredRecord, epoch: u64, now: Millis) -> Changed {
        let is_written = match self {
            Self::Renew(token, lease) => record.renew(token, now, lease),
            Self::Release(owner) if record.is_released_by(owner) => return Changed::Deleted,
            Self::Release(_) => false,
            Self::Finalise(token, end) => {
                let End { state, ttl } = end.into_owned();
                match record.finalise(token, state, now, ttl) {
                    Ok(None) => return Changed::Not(true), // Sent again.
                    end => end.is_ok(),
                }
            }
            Self::Settle(of, end) => {
                let (by, End { state, ttl }) =
                    (Token { epoch, owner: Token::BY_HAND }, end.into_owned());
                let is_meant = of.is_none_or(|of| of == record.token);
                is_meant && record.settle(by, state, now, ttl).is_ok()
            }
        };
        if is_written { Changed::Written } else { Changed::Not(false) }
    }

    /// The same change, which borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Change<'static> {
        match self {
            Self::Renew(token, lease) => Change::Renew(token, lease),
            Self::Release(owner) => Change::Release(owner),
            Self::Finalise(token, end) => Change::Finalise(token, Cow::Owned(end.into_owned())),
            Self::Settle(of, end) => Change::Settle(of, Cow::Owned(end.into_owned())),
        }
    }
}
