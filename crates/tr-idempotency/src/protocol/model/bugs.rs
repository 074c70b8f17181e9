//! Mistakes that other implementations made, or that are easy to make. The laws must find each of
//! them.
use super::{
    super::{Ask, Record, Reply, State},
    laws,
    world::Rec,
};
use std::mem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A lease that ends leaves nothing, as if the claim were the key's time to live.
    ExpiryDeletes,
    /// An end is recorded whatever its token.
    FinishUnchecked,
    /// A refused duplicate deletes the record when it is dropped.
    DuplicateDeletes,
    /// A caller that finds no record writes its claim later, over any record written meanwhile.
    RecoveryOverwrites,
    /// A settled record matches any params.
    DigestLost,
    /// A caller that fails deletes the record, even if it belongs to another claim.
    FailureDeletes,
    /// A claim that is sent again after its reply was lost waits for itself.
    OwnerUnknown,
    /// A full store evicts a live claim.
    LiveEvicted,
    /// A caller that slept since its claim runs without checking its lease.
    SleptThrough,
    /// A call of unknown outcome is claimed again, mutating or not.
    UnknownClaimed,
    /// A claim lasts until its owner releases it.
    LeaseForever,
}

/// Each bug with the law that finds it.
pub(super) const ALL: [(Bug, &str); 11] = [
    (Bug::ExpiryDeletes, laws::ONCE),
    (Bug::FinishUnchecked, laws::TRUTH),
    (Bug::DuplicateDeletes, laws::ONCE),
    (Bug::RecoveryOverwrites, laws::ONCE),
    (Bug::DigestLost, laws::OWN_PARAMS),
    (Bug::FailureDeletes, laws::ONCE),
    (Bug::OwnerUnknown, laws::OWN_CLAIM),
    (Bug::LiveEvicted, laws::KEPT),
    (Bug::SleptThrough, laws::ONCE),
    (Bug::UnknownClaimed, laws::ONCE),
    (Bug::LeaseForever, laws::NOT_STUCK),
];

impl Bug {
    /// The wrong result of a claim; `None` where the bug does not apply.
    pub(super) fn claim(self, record: &mut Rec, ask: &Ask) -> Option<Reply<(), ()>> {
        let is_live = matches!(record.state, State::Inflight);
        let is_lost = is_live && ask.now >= record.until;
        let is_unknown = is_lost || matches!(record.state, State::Unknown(_));
        match self {
            Self::ExpiryDeletes if is_lost => {}
            Self::UnknownClaimed if is_unknown && record.digest == ask.digest => {}
            Self::OwnerUnknown if is_live && record.token.owner == ask.token.owner => {
                return Some(Reply::Busy);
            }
            Self::LeaseForever if is_live => return Some(Reply::Busy),
            Self::DigestLost if !is_live => {
                record.digest = ask.digest;
                return None;
            }
            _ => return None,
        }
        Some(Reply::Claimed(Some(mem::replace(record, Record::new(ask)).state)))
    }
}
