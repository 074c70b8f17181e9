//! What to do about a call's final failure: one pure function.
use std::fmt;
use tr_core::{Effect, Ran, Verdict};

/// Why a call has no result of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// It failed for good, after whatever retries there were.
    Failed(Verdict),
    /// None of its tools is there.
    NoTool,
    /// It did not start, because a call that it needs has no result.
    Dependency,
    /// Somebody withdrew it, or the whole turn.
    Cancelled,
    /// The turn's time was over.
    TurnTimeout,
}

/// A call without a result, and all that the decision goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallen {
    /// Why.
    pub cause: Cause,
    /// Whether its tool ran.
    pub ran: Ran,
    /// What its tool does to the world.
    pub effect: Effect,
    /// Whether the turn cannot do without it.
    pub required: bool,
    /// Whether another tool can stand in for it.
    pub has_alternative: bool,
    /// Whether there is a value for those that need its result.
    pub has_default: bool,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Run the next tool that can stand in for it.
    UseAlternative,
    /// Give its dependents the default value.
    UseDefault,
    /// Go on without it.
    Skip,
    /// Go on without it, and tell the user. Its dependents get the default value, if there is one.
    Escalate,
}

/// What to do about it, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// What to do.
    pub recovery: Recovery,
    /// Why.
    pub reason: &'static str,
}

/// Decides what to do about a call that has no result.
///
/// A tool that may have run and that must not run twice has no alternative: two payment services
/// are two payments. Nor does a default value hide it: the user is told. A retry is not decided
/// here: that was the stack's, and is over.
///
/// ```
/// use tr_core::{Effect, Ran, Verdict};
/// use tr_turn::decide::{Cause, Fallen, Recovery, decide};
///
/// let lost = Fallen {
///     cause: Cause::Failed(Verdict::TRANSIENT),
///     ran: Ran::Unknown,
///     effect: Effect::Mutating,
///     required: false,
///     has_alternative: true,
///     has_default: false,
/// };
/// assert_eq!(decide(&lost).recovery, Recovery::Escalate);
/// assert_eq!(decide(&Fallen { has_default: true, ..lost }).recovery, Recovery::Escalate);
/// assert_eq!(decide(&Fallen { ran: Ran::No, ..lost }).recovery, Recovery::UseAlternative);
/// ```
#[must_use]
pub const fn decide(fallen: &Fallen) -> Decision {
    let Fallen { cause, required, has_alternative, has_default, .. } = *fallen;
    let in_doubt = may_have_changed_something(fallen);
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

const fn may_have_changed_something(fallen: &Fallen) -> bool {
    matches!(fallen.ran, Ran::Unknown) && !matches!(fallen.effect, Effect::ReadOnly)
}

impl Recovery {
    /// As traces spell it.
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

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `Escalate (required but missing input)`.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.recovery, self.reason)
    }
}
