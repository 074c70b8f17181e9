//! Emits the events of calls, breakers and sessions as `tracing` events with documented field names.
use std::{cell::LazyCell, time::Duration};
use tr_core::{canonical::Fingerprint, internal::millis};
use tracing::Level;

/// The target of all events.
pub const TARGET: &str = "tool_reliability";

/// The one list of the events' fields: each with its name in the log, its type, and how it is shown.
macro_rules! record {
    ($($(#[$doc:meta])* $name:ident = $field:ident: $type:ty $(=> $shown:expr)?,)*) => {
        /// One event. What is `None` is not known.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Record<'r> {
            $($(#[$doc])* pub(crate) $field: $type,)*
        }

        record! { @emit info INFO "A normal event." $($name = $field $(=> $shown)?,)* }
        record! { @emit warn WARN "An event that an operator may need to see." $($name = $field $(=> $shown)?,)* }
    };
    (@emit $emit:ident $level:ident $doc:literal $($name:ident = $field:ident $(=> $shown:expr)?,)*) => {
        #[doc = $doc]
        ///
        /// The record is built only if a subscriber reads its fields.
        pub(crate) fn $emit<'r>(record: impl FnOnce() -> Record<'r>) {
            let it = LazyCell::new(record);
            tracing::event!(
                target: TARGET,
                Level::$level,
                $($name = record!(@shown it.$field $(=> $shown)?),)*
            );
        }
    };
    (@shown $it:ident.$field:ident) => { $it.$field };
    (@shown $it:ident.$field:ident => $shown:expr) => { $it.$field.map($shown) };
}

record! {
    event = event: &'static str,
    requestId = request_id: Option<&'r str>,
    toolName = tool_name: &'r str,
    sessionKey = session_key: Option<&'r str>,
    idempotencyKeyHash = idempotency_key_hash: Option<Fingerprint> => tracing::field::display,
    correlationId = correlation_id: Option<&'r str>,
    /// The state of the record of the call.
    state = state: Option<&'r str>,
    /// Counts from 1; 0 for a call that had no attempt.
    attempt = attempt: Option<u32>,
    elapsedMs = elapsed: Option<Duration> => millis,
    fromCache = from_cache: Option<bool>,
    errorCode = error_code: Option<&'r str>,
    retriable = retriable: Option<bool>,
    breakerState = breaker_state: Option<&'static str>,
    /// The failure's message, redacted.
    error = error: Option<&'r str>,
    delayMs = delay: Option<Duration> => millis,
    /// The part of it that the server asked for.
    retryAfterMs = retry_after: Option<Duration> => millis,
    fromState = from_state: Option<&'static str>,
    /// What was done to a session.
    action = action: Option<&'static str>,
    /// How many messages that removed from it.
    removedMessages = removed: Option<u64>,
    /// Whether the decision was only reported, not applied.
    shadow = shadow: Option<bool>,
    params = params: Option<&'r str>,
    paramsBytes = params_bytes: Option<u64>,
    paramsDigest = params_digest: Option<Fingerprint> => tracing::field::display,
}

/// Whether a subscriber may want events.
#[inline]
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: TARGET, Level::WARN)
}
