//! The kinds of failure that the tables know, and what each of them means.
use super::reason;
use crate::{
    Classification,
    Ran::{self, No, Unknown, Yes},
    Verdict, code,
};

/// The kinds and what each of them means: code, verdict, whether the tool ran, and why, in one sentence.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = ($code:expr, $verdict:expr, $ran:expr, $reason:expr),)*) => {
        /// A kind of failure. Kinds are added in minor versions.
        ///
        /// [`code`](Kind::code) is stable: it appears on the wire, in metrics and in manifests.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        static TABLE: &[(Kind, &str, Verdict, Ran, &str)] =
            &[$((Kind::$kind, $code, $verdict, $ran, $reason),)*];
    };
}

const TRANSIENT: Verdict = Verdict::TRANSIENT;
const PERMANENT: Verdict = Verdict::Permanent;
const RUNS_TWICE: &str = "A retry could run the tool twice";

// A refusal is an answer: the attempt came to its end, so `Yes`. `No` is said by our own layers
// alone: what a tool's words say of a connection or a limit may be about its receipt mail.
kinds! {
    /// Something took too long.
    Timeout = (code::TIMEOUT, TRANSIENT, Unknown, reason::TIMEOUT),
    /// The network, or the server behind it, took too long.
    NetworkTimeout = ("network_timeout", TRANSIENT, Unknown, reason::NETWORK_TIMEOUT),
    /// Too many calls in too short a time.
    RateLimited = ("rate_limited", TRANSIENT, Unknown, reason::RATE_LIMIT),
    /// A quota or another resource is used up for the moment.
    ResourceExhausted = ("resource_exhausted", TRANSIENT, Unknown, reason::RATE_LIMIT),
    /// The callee has too much to do.
    Overloaded = ("overloaded", TRANSIENT, Unknown, "Overload passes"),
    /// The callee is not there for the moment.
    ServiceUnavailable = ("service_unavailable", TRANSIENT, Unknown, "Unavailable services come back"),
    /// The connection was refused: no process listens at the address.
    ConnectionRefused = ("connection_refused", TRANSIENT, Unknown, "Refused connections are temporary"),
    /// The name could not be resolved.
    DnsFailure = ("dns_failure", TRANSIENT, Unknown, "DNS failures are temporary"),
    /// The connection broke; what was sent may have been read.
    ConnectionReset = ("connection_reset", TRANSIENT, Unknown, "Broken connections are temporary"),
    /// Another failure of the network.
    NetworkError = ("network_error", TRANSIENT, Unknown, "Network failures are temporary"),
    /// A gateway got no proper answer.
    BadGateway = ("bad_gateway", TRANSIENT, Unknown, reason::SERVER),
    /// A gateway got no answer in time.
    GatewayTimeout = ("gateway_timeout", TRANSIENT, Unknown, reason::NETWORK_TIMEOUT),
    /// The callee failed.
    ServerError = ("server_error", TRANSIENT, Unknown, reason::SERVER),
    /// Another transaction was in the way.
    Conflict = ("conflict", TRANSIENT, Unknown, "Conflicting work ends"),
    /// A lock, a connection, memory: all taken for the moment.
    Busy = ("busy", TRANSIENT, Unknown, "Busy resources become free"),
    /// What was asked for is not ready yet, such as a job's result.
    NotReady = (code::NOT_READY, TRANSIENT, Unknown, "What is not ready becomes ready"),
    /// The caller cancelled the call.
    Cancelled = (code::CANCELLED, Verdict::Cancelled, Unknown, "The caller cancelled the call"),
    /// The input is wrong.
    InvalidInput = ("invalid_input", PERMANENT, Yes, reason::INVALID_INPUT),
    /// The caller is not authenticated.
    AuthFailed = ("auth_failed", PERMANENT, Yes, reason::AUTH),
    /// The caller may not do this.
    PermissionDenied = ("permission_denied", PERMANENT, Yes, reason::AUTH),
    /// What was asked for is not there.
    NotFound = ("not_found", PERMANENT, Yes, "What is missing won't appear on retry"),
    /// What was to be made, or taken, is there already.
    AlreadyExists = ("already_exists", PERMANENT, Yes, "What is there won't go away on retry"),
    /// The input is too large.
    TooLarge = ("too_large", PERMANENT, Yes, "Input won't shrink on retry"),
    /// A quota is used up, and only money or a new month fills it.
    QuotaExhausted = ("quota_exhausted", PERMANENT, Yes, "A spent quota won't refill on retry"),
    /// A content filter stopped it.
    ContentFiltered = ("content_filtered", PERMANENT, Yes, "Content filters won't change on retry"),
    /// The callee cannot do this at all.
    Unsupported = ("unsupported", PERMANENT, Yes, "Unsupported calls stay unsupported on retry"),
    /// The callee is not in the state that this needs.
    PreconditionFailed = ("precondition_failed", PERMANENT, Yes, "The state won't change on retry"),
    /// The disk is full.
    NoSpace = ("no_space", PERMANENT, Yes, "A full disk won't empty on retry"),
    /// The other side's certificate cannot be trusted.
    TlsUntrusted = ("tls_untrusted", PERMANENT, Unknown, "Certificates won't change on retry"),
    /// Refused with another 4xx.
    ClientError = ("client_error", PERMANENT, Yes, reason::PERMANENT),
    /// The tool reported a failure of its own.
    ToolError = (code::TOOL_ERROR, PERMANENT, Yes, "The model decides on a tool's own errors"),
    /// A breaker refused the call.
    CircuitOpen = (code::CIRCUIT_OPEN, TRANSIENT, No, "Circuit breakers close"),
    /// An inner layer has retried this without success.
    RetryExhausted = (code::RETRY_EXHAUSTED, TRANSIENT, Unknown, "Retries are used up"),
    /// The key was used before with other params.
    IdempotencyConflict = (code::IDEMPOTENCY_CONFLICT, PERMANENT, No, reason::INVALID_INPUT),
    /// Another call with this key is running.
    IdempotencyInFlight = (code::IDEMPOTENCY_IN_FLIGHT, TRANSIENT, No, "The call with this key ends"),
    /// The tool may have run, and its end was not recorded.
    OutcomeUnknown = (code::OUTCOME_UNKNOWN, PERMANENT, Unknown, RUNS_TWICE),
    /// An earlier call with this key has ended, and its answer was not kept.
    AnswerNotKept = (code::ANSWER_NOT_KEPT, PERMANENT, Yes, RUNS_TWICE),
    /// The record of an earlier call with this key cannot be read.
    RecordUnreadable = (code::RECORD_UNREADABLE, PERMANENT, Unknown, RUNS_TWICE),
    /// The same failing call again and again.
    LoopDetected = (code::LOOP_DETECTED, PERMANENT, No, "The same call fails the same way"),
    /// Too many failures in one turn.
    ToolErrorLimit = (code::TOOL_ERROR_LIMIT, PERMANENT, No, "The turn has had too many failures"),
    /// The turn or the session has had as many calls as it may.
    ToolCallLimit = (code::TOOL_CALL_LIMIT, PERMANENT, No, "The turn or the session has had too many calls"),
    /// The envelope does not have the form that the contract asks for.
    InvalidEnvelope = (code::INVALID_ENVELOPE, PERMANENT, No, reason::INVALID_INPUT),
    /// The records store has no room.
    StoreFull = (code::STORE_FULL, TRANSIENT, No, "Records expire"),
    /// The records store cannot be reached.
    StoreUnavailable = (code::STORE_UNAVAILABLE, TRANSIENT, No, "Unavailable stores come back"),
    /// The session's transcript is corrupt.
    SessionCorrupt = (code::SESSION_CORRUPT, PERMANENT, No, "A corrupt transcript stays corrupt on retry"),
    /// Nothing matches.
    Unclassified = (code::UNCLASSIFIED, TRANSIENT, Unknown, reason::UNCLASSIFIED),
}

impl Kind {
    #[doc(hidden)]
    pub fn all() -> impl Iterator<Item = Self> {
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
