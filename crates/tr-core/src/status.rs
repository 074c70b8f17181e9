//! How a call ended, in one word.
use crate::{Classification, Verdict, code};

/// How a call ended, in the words of BS-TIM-5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The tool did what it was asked for.
    Success,
    /// It failed, and would fail again; or the failure is none of the tool's.
    Error,
    /// It failed and may succeed later, no retry was made, and a repeat does no harm.
    RetriableError,
    /// Attempts, time or budget are used up.
    RetryExhausted,
    /// A breaker refused the call.
    CircuitOpen,
    /// A deadline passed.
    Timeout,
}

impl Status {
    /// The status of an end. `retriable` says whether its caller may repeat the call as it is
    /// ([`Classification::is_retriable`]); if not, it is no [`RetriableError`](Self::RetriableError).
    #[must_use]
    pub fn of(end: Classification<'_>, retriable: bool) -> Self {
        match (end.verdict, end.code) {
            (Verdict::Success, _) => Self::Success,
            (_, code::CIRCUIT_OPEN) => Self::CircuitOpen,
            (_, code::RETRY_EXHAUSTED) => Self::RetryExhausted,
            (_, code::TIMEOUT) => Self::Timeout,
            (Verdict::Transient { .. }, _) if end.exhausted => Self::RetryExhausted,
            (Verdict::Transient { .. }, code) if retriable && !is_plain_error(code) => {
                Self::RetriableError
            }
            _ => Self::Error,
        }
    }

    /// The status as the wire spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::RetriableError => "retriable_error",
            Self::RetryExhausted => "retry_exhausted",
            Self::CircuitOpen => "circuit_open",
            Self::Timeout => "timeout",
        }
    }
}

/// Codes that say more than a status could, whatever the verdict.
fn is_plain_error(code: &str) -> bool {
    matches!(
        code,
        code::IDEMPOTENCY_CONFLICT
            | code::IDEMPOTENCY_IN_FLIGHT
            | code::OUTCOME_UNKNOWN
            | code::ANSWER_NOT_KEPT
            | code::RECORD_UNREADABLE
            | code::CANCELLED
            | code::LOOP_DETECTED
            | code::TOOL_ERROR_LIMIT
            | code::TOOL_CALL_LIMIT
            | code::INVALID_ENVELOPE
            | code::UNCLASSIFIED
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ran;
    use Verdict::{Cancelled, Permanent, Success};

    #[test]
    fn each_end_has_its_status() {
        let transient = Verdict::TRANSIENT;
        for (verdict, code, exhausted, wanted) in [
            (Success, "success", false, "success"),
            (Permanent, "http_client_error", false, "error"),
            (transient, "http_unavailable", false, "retriable_error"),
            (transient, "http_unavailable", true, "retry_exhausted"),
            (transient, code::RETRY_EXHAUSTED, true, "retry_exhausted"),
            (transient, code::CIRCUIT_OPEN, false, "circuit_open"),
            (transient, code::CIRCUIT_OPEN, true, "circuit_open"),
            (transient, code::TIMEOUT, false, "timeout"),
            (transient, code::STORE_FULL, false, "retriable_error"),
            (Permanent, code::IDEMPOTENCY_CONFLICT, false, "error"),
            (transient, code::IDEMPOTENCY_IN_FLIGHT, false, "error"),
            (Permanent, code::OUTCOME_UNKNOWN, false, "error"),
            (Permanent, code::ANSWER_NOT_KEPT, false, "error"),
            (Permanent, code::RECORD_UNREADABLE, false, "error"),
            (Cancelled, code::CANCELLED, false, "error"),
            (Permanent, code::LOOP_DETECTED, false, "error"),
            (Permanent, code::TOOL_ERROR_LIMIT, false, "error"),
            (Permanent, code::INVALID_ENVELOPE, false, "error"),
            (transient, code::UNCLASSIFIED, false, "error"),
            (transient, code::UNCLASSIFIED, true, "retry_exhausted"),
        ] {
            let mut end = Classification::new(verdict, Ran::Unknown, code);
            end.exhausted = exhausted;
            assert_eq!(Status::of(end, true).as_str(), wanted, "{verdict:?} {code} {exhausted}");
            let unsafe_to_repeat = if wanted == "retriable_error" { "error" } else { wanted };
            assert_eq!(Status::of(end, false).as_str(), unsafe_to_repeat, "{verdict:?} {code}");
        }
    }
}
