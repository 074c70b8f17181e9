//! Error types: leaf → [`FailureInfo`] → cause.
use crate::store::StoreError;
use tr_core::{FailureInfo, Ran, Verdict, code};

/// The tool did not run because the session's store did not record its intent. The source is a
/// [`StoreError`].
///
/// Code `store_unavailable`, transient, or permanent if the store refuses or cannot read the
/// session. After another writer's change: code `session_corrupt`, transient, and the next call
/// reloads the session. The tool did not run ([`Ran::No`]).
#[derive(Debug, thiserror::Error)]
#[error("{INTENT_NOT_RECORDED}")]
pub struct IntentNotRecorded {
    #[source]
    facts: FailureInfo,
}

/// What the caller and the model read.
pub(crate) const INTENT_NOT_RECORDED: &str =
    "the session could not record the call before its run, so the tool did not run";

impl IntentNotRecorded {
    pub(super) fn new(cause: StoreError) -> Self {
        Self { facts: not_recorded(cause) }
    }

    /// Whether the tool ran: no.
    #[must_use]
    pub const fn ran(&self) -> Ran {
        Ran::No
    }
}

/// The failure information of a call whose intent was not recorded.
pub(crate) fn not_recorded(cause: StoreError) -> FailureInfo {
    let (code, verdict) = if cause.is_conflict() {
        (code::SESSION_CORRUPT, Verdict::TRANSIENT)
    } else if cause.is_passing() {
        (code::STORE_UNAVAILABLE, Verdict::TRANSIENT)
    } else {
        (code::STORE_UNAVAILABLE, Verdict::Permanent)
    };
    FailureInfo::new(code, Ran::No, verdict).by_layer().because(cause)
}
