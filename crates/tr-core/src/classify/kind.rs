//! The kinds of failure that the tables know, and what each of them means.
use self::Kind::*;
use super::reason;
use crate::{
    Classification,
    Ran::{self, No, Unknown, Yes},
    Verdict, code,
};

/// Phrases of one kind.
pub(super) type Group = (Kind, &'static str);

/// A kind of failure. Kinds are added in minor versions.
///
/// [`code`](Kind::code) is stable: it appears on the wire, in metrics and in manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Something took too long.
    Timeout,
    /// The network, or the server behind it, took too long.
    NetworkTimeout,
    /// Too many calls in too short a time.
    RateLimited,
    /// A quota or another resource is used up for the moment.
    ResourceExhausted,
    /// The callee has too much to do.
    Overloaded,
    /// The callee is not there for the moment.
    ServiceUnavailable,
    /// The connection was refused: no process listens at the address.
    ConnectionRefused,
    /// The name could not be resolved.
    DnsFailure,
    /// The connection broke; what was sent may have been read.
    ConnectionReset,
    /// Another failure of the network.
    NetworkError,
    /// A gateway got no proper answer.
    BadGateway,
    /// A gateway got no answer in time.
    GatewayTimeout,
    /// The callee failed.
    ServerError,
    /// Another transaction was in the way.
    Conflict,
    /// A lock, a connection, memory: all taken for the moment.
    Busy,
    /// What was asked for is not ready yet, such as a job's result.
    NotReady,
    /// The caller cancelled the call.
    Cancelled,
    /// The input is wrong.
    InvalidInput,
    /// The caller is not authenticated.
    AuthFailed,
    /// The caller may not do this.
    PermissionDenied,
    /// What was asked for is not there.
    NotFound,
    /// What was to be made, or taken, is there already.
    AlreadyExists,
    /// The input is too large.
    TooLarge,
    /// A quota is used up, and only money or a new month fills it.
    QuotaExhausted,
    /// A content filter stopped it.
    ContentFiltered,
    /// The callee cannot do this at all.
    Unsupported,
    /// The callee is not in the state that this needs.
    PreconditionFailed,
    /// The disk is full.
    NoSpace,
    /// The other side's certificate cannot be trusted.
    TlsUntrusted,
    /// Refused with another 4xx.
    ClientError,
    /// The tool reported a failure of its own.
    ToolError,
    /// A breaker refused the call.
    CircuitOpen,
    /// An inner layer has retried this without success.
    RetryExhausted,
    /// The key was used before with other params.
    IdempotencyConflict,
    /// Another call with this key is running.
    IdempotencyInFlight,
    /// The tool may have run, and its end was not recorded.
    OutcomeUnknown,
    /// An earlier call with this key has ended, and its answer was not kept.
    AnswerNotKept,
    /// The record of an earlier call with this key cannot be read.
    RecordUnreadable,
    /// The same failing call again and again.
    LoopDetected,
    /// Too many failures in one turn.
    ToolErrorLimit,
    /// The envelope does not have the form that the contract asks for.
    InvalidEnvelope,
    /// The records store has no room.
    StoreFull,
    /// The records store cannot be reached.
    StoreUnavailable,
    /// The session's transcript is corrupt.
    SessionCorrupt,
    /// Nothing matches.
    // The last one: a kind behind it would have no row.
    Unclassified,
}

const TRANSIENT: Verdict = Verdict::TRANSIENT;
const PERMANENT: Verdict = Verdict::Permanent;

/// All kinds in their order: code, verdict, whether the tool ran, and why, in one sentence.
// A refusal is an answer: the attempt came to its end, so `Yes`. `No` is said by our own layers
// alone: what a tool's words say of a connection or a limit may be about its receipt mail.
static TABLE: [(Kind, &str, Verdict, Ran, &str); Unclassified as usize + 1] = [
    (Timeout, code::TIMEOUT, TRANSIENT, Unknown, reason::TIMEOUT),
    (NetworkTimeout, "network_timeout", TRANSIENT, Unknown, reason::NETWORK_TIMEOUT),
    (RateLimited, "rate_limited", TRANSIENT, Unknown, reason::RATE_LIMIT),
    (ResourceExhausted, "resource_exhausted", TRANSIENT, Unknown, reason::RATE_LIMIT),
    (Overloaded, "overloaded", TRANSIENT, Unknown, "Overload passes"),
    (
        ServiceUnavailable,
        "service_unavailable",
        TRANSIENT,
        Unknown,
        "Unavailable services come back",
    ),
    (
        ConnectionRefused,
        "connection_refused",
        TRANSIENT,
        Unknown,
        "Refused connections are temporary",
    ),
    (DnsFailure, "dns_failure", TRANSIENT, Unknown, "DNS failures are temporary"),
    (ConnectionReset, "connection_reset", TRANSIENT, Unknown, "Broken connections are temporary"),
    (NetworkError, "network_error", TRANSIENT, Unknown, "Network failures are temporary"),
    (BadGateway, "bad_gateway", TRANSIENT, Unknown, reason::SERVER),
    (GatewayTimeout, "gateway_timeout", TRANSIENT, Unknown, reason::NETWORK_TIMEOUT),
    (ServerError, "server_error", TRANSIENT, Unknown, reason::SERVER),
    (Conflict, "conflict", TRANSIENT, Unknown, "Conflicting work ends"),
    (Busy, "busy", TRANSIENT, Unknown, "Busy resources become free"),
    (NotReady, code::NOT_READY, TRANSIENT, Unknown, "What is not ready becomes ready"),
    (Cancelled, code::CANCELLED, Verdict::Cancelled, Unknown, "The caller cancelled the call"),
    (InvalidInput, "invalid_input", PERMANENT, Yes, reason::INVALID_INPUT),
    (AuthFailed, "auth_failed", PERMANENT, Yes, reason::AUTH),
    (PermissionDenied, "permission_denied", PERMANENT, Yes, reason::AUTH),
    (NotFound, "not_found", PERMANENT, Yes, "What is missing won't appear on retry"),
    (AlreadyExists, "already_exists", PERMANENT, Yes, "What is there won't go away on retry"),
    (TooLarge, "too_large", PERMANENT, Yes, "Input won't shrink on retry"),
    (QuotaExhausted, "quota_exhausted", PERMANENT, Yes, "A spent quota won't refill on retry"),
    (ContentFiltered, "content_filtered", PERMANENT, Yes, "Content filters won't change on retry"),
    (Unsupported, "unsupported", PERMANENT, Yes, "Unsupported calls stay unsupported on retry"),
    (PreconditionFailed, "precondition_failed", PERMANENT, Yes, "The state won't change on retry"),
    (NoSpace, "no_space", PERMANENT, Yes, "A full disk won't empty on retry"),
    (TlsUntrusted, "tls_untrusted", PERMANENT, Unknown, "Certificates won't change on retry"),
    (ClientError, "client_error", PERMANENT, Yes, reason::PERMANENT),
    (ToolError, code::TOOL_ERROR, PERMANENT, Yes, "The model decides on a tool's own errors"),
    (CircuitOpen, code::CIRCUIT_OPEN, TRANSIENT, No, "Circuit breakers close"),
    (RetryExhausted, code::RETRY_EXHAUSTED, TRANSIENT, Unknown, "Retries are used up"),
    (IdempotencyConflict, code::IDEMPOTENCY_CONFLICT, PERMANENT, No, reason::INVALID_INPUT),
    (
        IdempotencyInFlight,
        code::IDEMPOTENCY_IN_FLIGHT,
        TRANSIENT,
        No,
        "The call with this key ends",
    ),
    (OutcomeUnknown, code::OUTCOME_UNKNOWN, PERMANENT, Unknown, "A retry could run the tool twice"),
    (AnswerNotKept, code::ANSWER_NOT_KEPT, PERMANENT, Yes, "A retry could run the tool twice"),
    (
        RecordUnreadable,
        code::RECORD_UNREADABLE,
        PERMANENT,
        Unknown,
        "A retry could run the tool twice",
    ),
    (LoopDetected, code::LOOP_DETECTED, PERMANENT, No, "The same call fails the same way"),
    (ToolErrorLimit, code::TOOL_ERROR_LIMIT, PERMANENT, No, "The turn has had too many failures"),
    (InvalidEnvelope, code::INVALID_ENVELOPE, PERMANENT, No, reason::INVALID_INPUT),
    (StoreFull, code::STORE_FULL, TRANSIENT, No, "Records expire"),
    (StoreUnavailable, code::STORE_UNAVAILABLE, TRANSIENT, No, "Unavailable stores come back"),
    (
        SessionCorrupt,
        code::SESSION_CORRUPT,
        PERMANENT,
        No,
        "A corrupt transcript stays corrupt on retry",
    ),
    (Unclassified, code::UNCLASSIFIED, TRANSIENT, Unknown, reason::UNCLASSIFIED),
];

// A kind's number is its row.
const _: () = {
    let mut at = 0;
    while at < TABLE.len() {
        assert!(TABLE[at].0 as usize == at, "the rows are in the order of the kinds");
        at += 1;
    }
};

impl Kind {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(kind, ..)| *kind)
    }

    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// How a failure of this kind ends an attempt.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        TABLE[self as usize].2
    }

    /// Whether the tool ran. `No` for the refusals of our own layers alone, and even those prove it
    /// only as an error of ours, not as a code that a tool gives.
    #[must_use]
    pub const fn ran(self) -> Ran {
        TABLE[self as usize].3
    }

    /// Why, in one sentence.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        TABLE[self as usize].4
    }

    /// The kind with this stable code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::all().find(|kind| kind.code() == code)
    }

    /// The classification that layers use.
    #[must_use]
    pub const fn classification(self) -> Classification<'static> {
        let (_, code, verdict, ran, _) = TABLE[self as usize];
        Classification { verdict, ran, code, exhausted: matches!(self, Self::RetryExhausted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_code() {
        for kind in Kind::all() {
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
        }
    }

    #[test]
    fn a_transient_kind_never_claims_that_the_tool_ran() {
        for kind in Kind::all() {
            assert!(!kind.verdict().is_transient() || kind.ran() != Yes, "{kind:?}");
        }
    }

    #[test]
    fn only_refusals_of_our_own_layers_say_that_a_tool_did_not_run() {
        for kind in Kind::all().filter(|kind| kind.ran() == No) {
            assert!(is_of_a_layer(kind), "{kind:?}");
        }
    }

    #[test]
    fn the_guide_lists_every_kind_as_it_is() {
        let guide = include_str!("../../../../docs/classification.md");
        for kind in Kind::all().filter(|kind| !is_of_a_layer(*kind)) {
            let verdict = kind.verdict().as_str();
            let ran = match kind.ran() {
                No => "no",
                Yes => "yes",
                Unknown => "unknown",
            };
            let row = format!("| `{}` | {verdict} | {ran} | {} |", kind.code(), kind.reason());
            assert!(guide.contains(&row), "missing: {row}");
        }
    }

    fn is_of_a_layer(kind: Kind) -> bool {
        (Kind::CircuitOpen as usize..=Kind::SessionCorrupt as usize).contains(&(kind as usize))
    }
}
