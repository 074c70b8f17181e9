//! Errors of the loop guard.
use crate::{call::ReachedLimit, message};
use std::{error::Error, fmt};
use tr_core::{BoxError, FailureInfo, Ran, Verdict, code};

/// The call would continue a loop: it failed the same way before, or a [signal](crate::Signals) was
/// detected. It was not executed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LoopDetected {
    message: String,
    rule: &'static str,
    failures: u32,
    #[source]
    facts: FailureInfo,
}

/// Too many calls failed in this turn; the call was not executed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolErrorLimit {
    message: String,
    failures: u32,
    #[source]
    facts: FailureInfo,
}

/// The turn, or the session, has had as many calls as it may; the call was not executed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolCallLimit {
    message: String,
    #[source]
    facts: FailureInfo,
}

/// The inner service's error, with notes for the model about repeating the call. Code, verdict and
/// whether the tool ran are the inner error's.
#[derive(Debug, thiserror::Error)]
pub struct Noted {
    notes: Vec<String>,
    /// With the inner error as their cause.
    #[source]
    facts: FailureInfo,
}

/// Of a call that was not made, and is not to be tried again.
const fn refused(code: &'static str) -> FailureInfo {
    FailureInfo::new(code, Ran::No, Verdict::Permanent).exhausted().by_layer()
}

impl LoopDetected {
    pub(crate) fn new(message: String, rule: &'static str, failures: u32) -> Self {
        Self { message, rule, failures, facts: refused(code::LOOP_DETECTED) }
    }

    /// The rule: `identical` failures, or the signal `repeat`, `cycle`, `same_error` or `quiet`.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        self.rule
    }

    /// How often the call has failed, or the signal was detected.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

impl ToolErrorLimit {
    pub(crate) fn new(failures: u32) -> Self {
        let message = message::tool_error_limit(failures);
        Self { message, failures, facts: refused(code::TOOL_ERROR_LIMIT) }
    }

    /// How many calls of the turn have failed.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

impl ToolCallLimit {
    pub(crate) fn new(tool: &str, reached: ReachedLimit) -> Self {
        let message = message::tool_call_limit(tool, reached);
        Self { message, facts: refused(code::TOOL_CALL_LIMIT) }
    }
}

impl Noted {
    pub(crate) fn new(notes: Vec<String>, inner: BoxError) -> Self {
        Self { notes, facts: FailureInfo::wrapping(inner).by_layer() }
    }

    /// Adds the same notes to another error.
    #[must_use]
    pub fn map(self, change: impl FnOnce(BoxError) -> BoxError) -> Self {
        let inner = self.facts.into_cause().expect("made with a cause of its own");
        Self::new(self.notes, change(inner))
    }

    /// The error without the notes.
    #[must_use]
    pub fn inner(&self) -> &(dyn Error + 'static) {
        self.facts.source().expect("made with a cause")
    }

    /// The added notes.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(inner) = self.facts.source() {
            fmt::Display::fmt(inner, f)?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}"))
    }
}
