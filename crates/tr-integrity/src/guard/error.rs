//! Error types: leaf → [`FailureInfo`] → cause.
use crate::{
    cycle::{layer_error, not_recorded},
    session::ErrorRecovery,
    store::StoreError,
};
use std::fmt;
use tr_core::{FailureInfo, Ran, Verdict, code};
use tr_transcript::{Finding, RepairPlan, Severity, ValidationResult};

layer_error! {
    /// The provider would refuse the transcript, so it was not sent; the error offers a repair.
    ///
    /// Permanent, with the code `session_corrupt`. The model was not called ([`Ran::No`]).
    SessionCorrupt { findings: Vec<Finding>, result: ValidationResult, plan: RepairPlan } Ran::No
}

layer_error! {
    /// A content filter stopped the model's answer. The messages added to the session since the call
    /// began are removed. The error's text is for the user.
    ///
    /// Permanent, with the code `content_filter`. The model ran ([`Ran::Yes`]).
    #[error("{}", .recovery.message)]
    ContentFiltered { recovery: ErrorRecovery } Ran::Yes
}

layer_error! {
    /// A streamed answer ended before its provider's last event, without another error. The messages
    /// added to the session since the call began are removed.
    ///
    /// Transient, with the code `answer_cut_off`. The model ran ([`Ran::Yes`]).
    #[error(
        "The model's answer broke off before its end.{}",
        .recovery.as_ref().map(|recovery| format!(" {}", recovery.message)).unwrap_or_default()
    )]
    AnswerCutOff { recovery: Option<ErrorRecovery> } Ran::Yes
}

layer_error! {
    /// The model was not called because the session's store did not record the checkpoint. The
    /// source is a [`StoreError`](crate::store::StoreError).
    ///
    /// Code `store_unavailable`, transient, or permanent if the store refuses or cannot read the
    /// session. After another writer's change: code `session_corrupt`, transient, and the next call
    /// reloads the session. The model was not called ([`Ran::No`]).
    #[error("the model was not called: the sessions' store did not record the checkpoint")]
    CheckpointNotRecorded {} Ran::No
}

impl SessionCorrupt {
    pub(super) fn new(findings: Vec<Finding>, result: ValidationResult, plan: RepairPlan) -> Self {
        let facts = FailureInfo::new(code::SESSION_CORRUPT, Ran::No, Verdict::Permanent).by_layer();
        Self { findings, result, plan, facts }
    }

    /// All findings.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The validation's summary.
    #[must_use]
    pub fn result(&self) -> &ValidationResult {
        &self.result
    }

    /// The offered repair, which is not applied yet.
    pub fn plan(&self) -> &RepairPlan {
        &self.plan
    }
}

impl ContentFiltered {
    pub(super) fn new(recovery: ErrorRecovery, cause: Option<tr_core::BoxError>) -> Self {
        let facts = FailureInfo::new("content_filter", Ran::Yes, Verdict::Permanent).by_layer();
        let facts = match cause {
            Some(cause) => facts.because(cause),
            None => facts,
        };
        Self { recovery, facts }
    }

    /// What was done about it.
    #[must_use]
    pub fn recovery(&self) -> &ErrorRecovery {
        &self.recovery
    }
}

impl AnswerCutOff {
    pub(super) fn new(recovery: Option<ErrorRecovery>) -> Self {
        Self {
            recovery,
            facts: FailureInfo::new("answer_cut_off", Ran::Yes, Verdict::TRANSIENT).by_layer(),
        }
    }

    /// What was done about it; `None` for a call that belongs to no session.
    #[must_use]
    pub fn recovery(&self) -> Option<&ErrorRecovery> {
        self.recovery.as_ref()
    }
}

impl CheckpointNotRecorded {
    pub(super) fn new(cause: StoreError) -> Self {
        Self { facts: not_recorded(cause) }
    }
}

impl fmt::Display for SessionCorrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.findings.iter().filter(|f| f.severity == Severity::Error).count();
        let repairs = self.plan.actions().len();
        match &self.result.error {
            Some(error) => write!(f, "session is corrupt: {error}")?,
            None => f.write_str("session has tool uses that wait for their results")?,
        }
        let s = |count| if count == 1 { "" } else { "s" };
        write!(
            f,
            "; the model was not called ({errors} error{}; a repair of {repairs} step{} is offered)",
            s(errors),
            s(repairs)
        )
    }
}
