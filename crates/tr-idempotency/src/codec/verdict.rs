//! Verdicts as JSON.
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tr_core::Verdict;

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum VerdictForm {
    Success,
    Transient { retry_after: Option<Duration> },
    Permanent,
    Cancelled,
}

impl From<Verdict> for VerdictForm {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Success => Self::Success,
            Verdict::Transient { retry_after } => Self::Transient { retry_after },
            Verdict::Permanent => Self::Permanent,
            Verdict::Cancelled => Self::Cancelled,
        }
    }
}

impl From<VerdictForm> for Verdict {
    fn from(form: VerdictForm) -> Self {
        match form {
            VerdictForm::Success => Self::Success,
            VerdictForm::Transient { retry_after } => Self::Transient { retry_after },
            VerdictForm::Permanent => Self::Permanent,
            VerdictForm::Cancelled => Self::Cancelled,
        }
    }
}
