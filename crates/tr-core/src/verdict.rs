//! How an attempt ended, whether the tool ran, and what a tool does to the world.
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a tool does to the world; it decides what may be repeated.
///
/// Undeclared tools count as [`Mutating`](Effect::Mutating).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing.
    #[serde(alias = "readOnly")]
    ReadOnly,
    /// A repeat changes nothing more.
    Idempotent,
    /// A repeat may do harm: a second payment, a second message.
    #[default]
    Mutating,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did what it was asked for.
    Success,
    /// It failed, and another attempt may succeed.
    Transient {
        /// How long the callee asked us to wait, if it did.
        retry_after: Option<Duration>,
    },
    /// It failed, and would fail again.
    Permanent,
    /// The caller withdrew it.
    Cancelled,
}

impl Verdict {
    /// A transient failure without a hint when to come back.
    pub const TRANSIENT: Self = Self::Transient { retry_after: None };

    /// Whether this is [`Success`](Verdict::Success).
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Success)
    }

    /// Whether this is [`Transient`](Verdict::Transient).
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Transient { .. })
    }

    /// Its name in small letters, such as `transient`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Transient { .. } => "transient",
            Self::Permanent => "permanent",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Whether the tool ran. Every error of ours says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ran {
    /// It never started.
    No,
    /// It ran to its end.
    Yes,
    /// It may have run, wholly or in part.
    Unknown,
}

impl Ran {
    /// What is known of a call after several attempts: `No` only if none of them ran.
    #[must_use]
    pub const fn or(self, later: Self) -> Self {
        match (self, later) {
            (Self::No, ran) | (ran, Self::No) => ran,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }
}

/// All that the layers want to know of an attempt's end.
///
/// The code borrows from the response or error that was classified, so that classifying never
/// allocates. Made by [`new`](Self::new); fields are added in minor versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Classification<'r> {
    /// How it ended.
    pub verdict: Verdict,
    /// Whether the tool ran.
    pub ran: Ran,
    /// A stable code, from [`code`](crate::code) or the tool's own.
    pub code: &'r str,
    /// Nobody further out may retry this: somebody further in has, or part of the answer has gone
    /// out already.
    pub exhausted: bool,
}

impl<'r> Classification<'r> {
    /// The tool ran and succeeded.
    pub const SUCCESS: Self =
        Self { verdict: Verdict::Success, ran: Ran::Yes, code: "success", exhausted: false };

    /// A failure that nobody has retried yet.
    #[must_use]
    pub const fn new(verdict: Verdict, ran: Ran, code: &'r str) -> Self {
        Self { verdict, ran, code, exhausted: false }
    }
}

#[cfg(test)]
mod tests {
    use super::Ran::{No, Unknown, Yes};

    #[test]
    fn ran_is_no_only_if_no_attempt_ran() {
        assert_eq!(No.or(No), No);
        for (a, b, both) in [(No, Yes, Yes), (No, Unknown, Unknown), (Yes, Unknown, Unknown)] {
            assert_eq!((a.or(b), b.or(a)), (both, both));
        }
        assert_eq!(Yes.or(Yes), Yes);
    }
}
