//! Whether a call of unknown outcome may still run.
use super::StoreHandle;
use crate::{
    record::{DedupeRecord, RecordState},
    store::StoreError,
};
use std::time::Duration;
use tr_core::{SystemClock, WallClock, code};

/// The codes of calls that their process gave up while the tool may have gone on.
const GIVEN_UP: [&str; 3] = [code::TIMEOUT, code::CANCELLED, code::OUTCOME_UNKNOWN];

/// Longer than tools usually run after they were given up.
const RECENT: Duration = Duration::from_secs(600);

/// Whether a call of unknown outcome may still run. Settled as
/// [`DidNotRun`](crate::Resolution::DidNotRun) meanwhile, it may run twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MayStillRun {
    /// Its process has ended, the tool has answered, or the outcome is known.
    No,
    /// Its process is alive, and may get the tool's answer.
    OwnerLives,
    /// The store does not know which processes are alive, and the record changed less than ten
    /// minutes ago.
    Recent,
    /// The same, and the record is older.
    Unknown,
}

impl MayStillRun {
    /// Why the call is not settled as not executed, unless the operator insists; `None` if it may
    /// be.
    #[must_use]
    pub const fn refusal(self) -> Option<&'static str> {
        match self {
            Self::OwnerLives => Some(
                "the call may still run: the process that sent it is running, and a late answer would settle the record",
            ),
            Self::Recent => Some(
                "the call may still run: the record changed less than 10 minutes ago, and this store does not know whether the process that sent the call is running",
            ),
            Self::No | Self::Unknown => None,
        }
    }
}

impl<V: Send + 'static> StoreHandle<V> {
    /// Whether the call of this record may still run.
    pub async fn may_still_run(&self, record: &DedupeRecord) -> Result<MayStillRun, StoreError> {
        let is_given_up = record.error.as_ref().is_none_or(|it| GIVEN_UP.contains(&&*it.code));
        let Some(key) = record.key.parse().ok().filter(|_| is_given_up) else {
            return Ok(MayStillRun::No);
        };
        if record.state != RecordState::Unknown {
            return Ok(MayStillRun::No);
        }
        Ok(match self.remote.gate.is_owner_alive(&key).await? {
            Some(true) => MayStillRun::OwnerLives,
            Some(false) => MayStillRun::No,
            None => {
                let age = SystemClock.unix_ms().saturating_sub(record.updated_at_ms);
                let is_recent = u128::from(age) < RECENT.as_millis();
                if is_recent { MayStillRun::Recent } else { MayStillRun::Unknown }
            }
        })
    }
}
