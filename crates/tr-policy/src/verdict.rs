//! How an attempt ended, whether the tool ran, and the effect of a tool.
use crate::code;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The effect of a tool on the outside world; it decides what may be repeated.
///
/// Undeclared tools count as [`Mutating`](Effect::Mutating).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing.
    ReadOnly,
    /// A repeat changes nothing more.
    Idempotent,
    /// A repeat may do harm: a second payment, a second message.
    #[default]
    Mutating,
}

impl Effect {
    /// Whether another run of such a tool is safe: the first did not run, the tool changes nothing, or
    /// a repeat is declared safe.
    #[must_use]
    pub const fn may_repeat(self, ran: Ran, repeat_safe: Option<bool>) -> bool {
        match (ran, self) {
            (Ran::No, _) | (_, Self::ReadOnly) => true,
            (_, Self::Idempotent) => !matches!(repeat_safe, Some(false)),
            (_, Self::Mutating) => matches!(repeat_safe, Some(true)),
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// It did what it was asked for.
    Success,
    /// It failed, and another attempt may succeed.
    Transient {
        /// How long the callee asks to wait before the next attempt.
        retry_after: Option<Duration>,
    },
    /// It failed, and would fail again.
    Permanent,
    /// The caller cancelled it.
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

/// The classified end of an attempt, as layers use it.
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
    /// Outer layers must not retry this: an inner layer has, or part of the answer was sent already.
    pub exhausted: bool,
}

impl<'r> Classification<'r> {
    /// The tool ran and succeeded.
    pub const SUCCESS: Self =
        Self { verdict: Verdict::Success, ran: Ran::Yes, code: "success", exhausted: false };

    /// A failure that has not been retried yet.
    #[must_use]
    pub const fn new(verdict: Verdict, ran: Ran, code: &'r str) -> Self {
        Self { verdict, ran, code, exhausted: false }
    }

    /// How long the callee asks to wait, where it does.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Transient { retry_after } => retry_after,
            _ => None,
        }
    }

    /// Whether a caller that repeats the call as it is does no harm and may succeed: what
    /// `retriable` says in envelopes, events and `_meta`.
    ///
    /// Where a mutating tool may have run it is `false`, unless a repeat is declared safe. The
    /// marker of a call in flight stays retriable: its key does not run twice.
    #[must_use]
    pub fn is_retriable(&self, effect: Effect, repeat_safe: Option<bool>) -> bool {
        let joins = self.code == code::IDEMPOTENCY_IN_FLIGHT && !self.exhausted;
        self.verdict.is_transient() && (joins || effect.may_repeat(self.ran, repeat_safe))
    }

    /// What a model has to read beside a failure of this kind, lest it repeats the call and does harm.
    ///
    /// `None` where a repeat does none, and where the tool has refused the call itself.
    #[must_use]
    pub fn warning(&self, effect: Effect, repeat_safe: Option<bool>) -> Option<&'static str> {
        let joins = self.code == code::IDEMPOTENCY_IN_FLIGHT && !self.exhausted;
        if joins || effect.may_repeat(self.ran, repeat_safe) {
            return None;
        }
        match self.ran {
            Ran::Unknown => Some("it may have run; do not repeat it; check first"),
            Ran::Yes if self.verdict.is_transient() => Some("it has run; do not repeat it"),
            Ran::Yes | Ran::No => None,
        }
    }

    /// Whether the attempt that ended like this got as far as its tool. One that an open breaker or
    /// `load_shed` refused, whose deadline passed before the tool was ready, or that was cancelled
    /// before did not, and is not counted.
    ///
    /// A tool that could not reach its server was asked all the same: that is an attempt.
    #[must_use]
    pub fn reached_tool(&self) -> bool {
        let refused = matches!(
            self.code,
            code::CIRCUIT_OPEN | code::TIMEOUT | code::CANCELLED | "overloaded"
        );
        !(refused && self.ran == Ran::No && !self.verdict.is_success())
    }

    /// The same end, given by a handler of one's own instead of a remote server: it has run, or may
    /// have, whatever its status or its words say.
    ///
    /// For a [`ResponsePolicy`](crate::ResponsePolicy) around a server's own handler, where a 429 is what the
    /// handler answered after it began.
    #[must_use]
    pub const fn of_handler(mut self) -> Self {
        if matches!(self.ran, Ran::No) {
            self.ran = Ran::Unknown;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Ran::{No, Unknown, Yes},
        *,
    };

    #[test]
    fn what_may_have_run_is_not_retriable_unless_a_repeat_is_safe() {
        let end = |ran| Classification::new(Verdict::TRANSIENT, ran, "x");
        for ran in [Unknown, Yes] {
            assert!(!end(ran).is_retriable(Effect::Mutating, None), "{ran:?}");
            assert!(end(ran).is_retriable(Effect::Mutating, Some(true)), "{ran:?}");
            assert!(!end(ran).is_retriable(Effect::Idempotent, Some(false)), "{ran:?}");
            for effect in [Effect::ReadOnly, Effect::Idempotent] {
                assert!(end(ran).is_retriable(effect, None), "{ran:?}");
            }
        }
        assert!(end(No).is_retriable(Effect::Mutating, None));
        let in_flight = Classification { code: code::IDEMPOTENCY_IN_FLIGHT, ..end(Unknown) };
        assert!(in_flight.is_retriable(Effect::Mutating, None));
        let permanent = Classification { verdict: Verdict::Permanent, ..end(No) };
        assert!(!permanent.is_retriable(Effect::ReadOnly, None));
    }

    #[test]
    fn ran_is_no_only_if_no_attempt_ran() {
        assert_eq!(No.or(No), No);
        for (a, b, both) in [(No, Yes, Yes), (No, Unknown, Unknown), (Yes, Unknown, Unknown)] {
            assert_eq!((a.or(b), b.or(a)), (both, both));
        }
        assert_eq!(Yes.or(Yes), Yes);
    }

    #[test]
    fn what_a_layer_in_front_refused_is_no_attempt() {
        let reached = |code, ran| Classification::new(Verdict::TRANSIENT, ran, code).reached_tool();
        for refusal in [code::CIRCUIT_OPEN, code::TIMEOUT, code::CANCELLED, "overloaded"] {
            assert!(!reached(refusal, Ran::No), "{refusal}");
            // The tool's own, or an inner breaker behind attempts that may have run.
            assert!(reached(refusal, Ran::Unknown) && reached(refusal, Ran::Yes), "{refusal}");
        }
        for failure in ["network_error", "rate_limited", code::UNCLASSIFIED] {
            assert!(reached(failure, Ran::No), "{failure}");
        }
        assert!(Classification::SUCCESS.reached_tool());
    }
}
