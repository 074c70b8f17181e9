//! What to do about a call's final failure: one pure function.
use std::fmt;
use tr_core::{Effect, Ran, Verdict};

/// Why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// It failed, after all retries.
    Failed(Verdict),
    /// None of its tools is available.
    NoTool,
    /// It did not start, because a call that it needs has no result.
    Dependency,
    /// It was cancelled, or the whole turn was.
    Cancelled,
    /// The turn timed out.
    TurnTimeout,
}

/// A call without a result: the input of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// The reason.
    pub cause: Cause,
    /// Whether its tool ran.
    pub ran: Ran,
    /// The effect of its tool.
    pub effect: Effect,
    /// Whether the call is required.
    pub required: bool,
    /// Whether there is an alternative tool.
    pub has_alternative: bool,
    /// Whether there is a default value for its dependents.
    pub has_default: bool,
}

impl FailedCall {
    /// An optional call without an alternative and without a default value.
    pub(crate) const fn new(cause: Cause, ran: Ran, effect: Effect) -> Self {
        Self { cause, ran, effect, required: false, has_alternative: false, has_default: false }
    }
}

/// The recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Run the next alternative tool.
    UseAlternative,
    /// Give its dependents the default value.
    UseDefault,
    /// Continue without it.
    Skip,
    /// Continue without it, and tell the user. Its dependents get the default value, if there is
    /// one.
    Escalate,
}

/// The recovery and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// What to do.
    pub recovery: Recovery,
    /// The reason.
    pub reason: &'static str,
}

/// Decides the recovery for a call without a result.
///
/// A tool that may have run and must not run twice has no alternative: two payment services would
/// make two payments. A default value does not hide such a failure either: it is escalated to the
/// user. Retries are decided by the stack before this.
///
/// ```
/// use tr_core::{Effect, Ran, Verdict};
/// use tr_turn::decide::{Cause, FailedCall, Recovery, decide};
///
/// let lost = FailedCall {
///     cause: Cause::Failed(Verdict::TRANSIENT),
///     ran: Ran::Unknown,
///     effect: Effect::Mutating,
///     required: false,
///     has_alternative: true,
///     has_default: false,
/// };
/// assert_eq!(decide(&lost).recovery, Recovery::Escalate);
/// assert_eq!(decide(&FailedCall { has_default: true, ..lost }).recovery, Recovery::Escalate);
/// assert_eq!(decide(&FailedCall { ran: Ran::No, ..lost }).recovery, Recovery::UseAlternative);
/// ```
#[must_use]
pub const fn decide(failed_call: &FailedCall) -> Decision {
    let FailedCall { cause, ran, effect, required, has_alternative, has_default } = *failed_call;
    // It may have changed something.
    let in_doubt = matches!(ran, Ran::Unknown) && !matches!(effect, Effect::ReadOnly);
    let (recovery, reason) = match cause {
        Cause::Failed(Verdict::Cancelled) | Cause::Cancelled if in_doubt => {
            (Recovery::Escalate, "Cancelled by the caller, and the tool may have run")
        }
        Cause::Failed(Verdict::Cancelled) | Cause::Cancelled if has_default => {
            (Recovery::UseDefault, "Cancelled by the caller + default value available")
        }
        Cause::Failed(Verdict::Cancelled) | Cause::Cancelled => {
            (Recovery::Skip, "Cancelled by the caller")
        }
        Cause::TurnTimeout if required => (Recovery::Escalate, "Required, and the turn timed out"),
        Cause::TurnTimeout if in_doubt => {
            (Recovery::Escalate, "The turn timed out, and the tool may have run")
        }
        Cause::TurnTimeout => (Recovery::Skip, "The turn timed out"),
        Cause::Dependency if has_default => {
            (Recovery::UseDefault, "Dependency failed + default value available")
        }
        Cause::Dependency if required => (Recovery::Escalate, "required but missing input"),
        Cause::Dependency => (Recovery::Skip, "optional"),
        Cause::NoTool if has_default => {
            (Recovery::UseDefault, "No such tool + default value available")
        }
        Cause::NoTool if required => (Recovery::Escalate, "required, and there is no such tool"),
        Cause::NoTool => (Recovery::Skip, "There is no such tool"),
        Cause::Failed(_) if in_doubt && has_default => {
            (Recovery::Escalate, "The tool may have run, which a default value does not say")
        }
        Cause::Failed(_) if in_doubt => {
            (Recovery::Escalate, "The tool may have run, and must not run twice")
        }
        Cause::Failed(verdict) => {
            let permanent = matches!(verdict, Verdict::Permanent);
            match (has_alternative, has_default) {
                (true, _) if permanent => {
                    (Recovery::UseAlternative, "Permanent error + alternative available")
                }
                (true, _) => (
                    Recovery::UseAlternative,
                    "Transient error + no retries left + alternative available",
                ),
                (false, true) if permanent => {
                    (Recovery::UseDefault, "Permanent error + default value available")
                }
                (false, true) => (
                    Recovery::UseDefault,
                    "Transient error + no retries left + default value available",
                ),
                (false, false) if permanent => (Recovery::Escalate, "Permanent error (no retry)"),
                (false, false) if required => {
                    (Recovery::Escalate, "Transient error + no retries left + required")
                }
                (false, false) => (Recovery::Skip, "Transient error + no retries left + optional"),
            }
        }
    };
    Decision { recovery, reason }
}

impl Recovery {
    /// The name in traces.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UseAlternative => "UseAlternative",
            Self::UseDefault => "UseDefault",
            Self::Skip => "Skip",
            Self::Escalate => "Escalate",
        }
    }
}

/// `Escalate (required but missing input)`.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.recovery.as_str(), self.reason)
    }
}
