//! Verdicts as JSON.
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tr_core::Verdict;

/// For `#[serde(with)]`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Verdict", rename_all = "camelCase")]
pub(super) enum VerdictForm {
    Success,
    Transient { retry_after: Option<Duration> },
    Permanent,
    Cancelled,
}

/// For a member that may be absent.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct ThisVerdict(#[serde(with = "VerdictForm")] pub(super) Verdict);
