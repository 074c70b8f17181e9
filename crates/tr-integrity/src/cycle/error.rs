//! Error types: leaf → [`FailureInfo`] → cause.
use crate::store::StoreError;
use tr_core::{FailureInfo, Ran, Verdict, code};

/// An error of a layer: what it holds beside its facts, and whether the call ran.
macro_rules! layer_error {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),* } $ran:expr) => {
        #[derive(Debug, thiserror::Error)]
        $(#[$meta])*
        pub struct $name {
            $($field: $type,)*
            #[source]
            facts: FailureInfo,
        }

        impl $name {
            /// Whether the tool or the model ran: as said above.
            #[must_use]
            pub const fn ran(&self) -> Ran {
                $ran
            }
        }
    };
}

pub(crate) use layer_error;

layer_error! {
    /// The tool did not run because the session's store did not record its intent. The source is a
    /// [`StoreError`].
    ///
    /// Code `store_unavailable`, transient, or permanent if the store refuses or cannot read the
    /// session. After another writer's change: code `session_corrupt`, transient, and the next call
    /// reloads the session. The tool did not run ([`Ran::No`]).
    #[error("{INTENT_NOT_RECORDED}")]
    IntentNotRecorded {} Ran::No
}

/// What the caller and the model read.
pub(crate) const INTENT_NOT_RECORDED: &str =
    "the session could not record the call before its run, so the tool did not run";

impl IntentNotRecorded {
    pub(super) fn new(cause: StoreError) -> Self {
        Self { facts: not_recorded(cause) }
    }
}

/// The failure information of a call whose intent was not recorded.
pub(crate) fn not_recorded(cause: StoreError) -> FailureInfo {
    let (code, verdict) = if cause.is_conflict() {
        (code::SESSION_CORRUPT, Verdict::TRANSIENT)
    } else if cause.is_transient() {
        (code::STORE_UNAVAILABLE, Verdict::TRANSIENT)
    } else {
        (code::STORE_UNAVAILABLE, Verdict::Permanent)
    };
    FailureInfo::new(code, Ran::No, verdict).by_layer().because(cause)
}
