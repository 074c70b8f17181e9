//! The changes of a record after its claim, for stores that are written in Rust.
use super::{End, StoredRecord};
use crate::protocol::{Millis, Token};

/// A change of the record of one key, as it stands.
pub(crate) enum Change {
    Renew(Token, Millis),
    Release(u64),
    Finalise(Token, End),
    Settle(Option<Token>, End),
}

/// What the store does with the record.
pub(crate) enum Changed {
    /// It stays as it is; whether that is what was asked for.
    Not(bool),
    Written,
    Deleted,
}

impl Change {
    /// Applies the change at the store's time. `epoch` is above all earlier ones of the key.
    pub(crate) fn apply(self, record: &mut StoredRecord, epoch: u64, now: Millis) -> Changed {
        let is_written = match self {
            Self::Renew(token, lease) => record.renew(token, now, lease),
            Self::Release(owner) if record.is_released_by(owner) => return Changed::Deleted,
            Self::Release(_) => false,
            Self::Finalise(token, end) => match record.finalise(token, end.state, now, end.ttl) {
                Ok(None) => return Changed::Not(true), // Sent again.
                end => end.is_ok(),
            },
            Self::Settle(of, end) => {
                let by = Token { epoch, owner: Token::BY_HAND };
                let is_meant = of.is_none_or(|of| of == record.token);
                is_meant && record.settle(by, end.state, now, end.ttl).is_ok()
            }
        };
        if is_written { Changed::Written } else { Changed::Not(false) }
    }
}
