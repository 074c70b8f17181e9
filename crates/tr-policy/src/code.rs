//! The stable codes that errors of ours carry, as they appear on the wire.

/// An attempt, a call or a turn ran out of time.
pub const TIMEOUT: &str = "timeout";
/// A breaker refused the call.
pub const CIRCUIT_OPEN: &str = "circuit_open";
/// Attempts, time or budget are used up.
pub const RETRY_EXHAUSTED: &str = "retry_exhausted";
/// The key was used before with other params.
pub const IDEMPOTENCY_CONFLICT: &str = "idempotency_conflict";
/// Another call with this key is running: the 409 marker.
pub const IDEMPOTENCY_IN_FLIGHT: &str = "idempotency_in_flight";
/// The tool may have run, and its end was not recorded.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";
/// An earlier call with this key has ended, and its answer was not kept.
pub const ANSWER_NOT_KEPT: &str = "answer_not_kept";
/// The tool ran, and its answer is too long to be given to the caller.
pub const ANSWER_TOO_LARGE: &str = "answer_too_large";
/// The record of an earlier call with this key cannot be read.
pub const RECORD_UNREADABLE: &str = "record_unreadable";
/// The caller cancelled the call.
pub const CANCELLED: &str = "cancelled";
/// The same failing call again and again.
pub const LOOP_DETECTED: &str = "loop_detected";
/// Too many failures in one turn.
pub const TOOL_ERROR_LIMIT: &str = "tool_error_limit";
/// The turn or the session has had as many calls as it may.
pub const TOOL_CALL_LIMIT: &str = "tool_call_limit";
/// The envelope or the params do not have the form that the contract asks for.
pub const INVALID_ENVELOPE: &str = "invalid_envelope";
/// The tool reported a failure of its own.
pub const TOOL_ERROR: &str = "tool_error";
/// Nothing that we know matches the error.
pub const UNCLASSIFIED: &str = "unclassified";
/// The records store has no room for another claim.
pub const STORE_FULL: &str = "store_full";
/// The records store cannot be reached.
pub const STORE_UNAVAILABLE: &str = "store_unavailable";
/// The session's transcript is corrupt, or changed under us.
pub const SESSION_CORRUPT: &str = "session_corrupt";
/// The callee asked for fewer calls: HTTP 429, gRPC `RESOURCE_EXHAUSTED` and their like.
pub const RATE_LIMITED: &str = "rate_limited";
/// What was asked for is not ready yet.
pub const NOT_READY: &str = "not_ready";
