//! Emits the events of calls, breakers and sessions as `tracing` events with documented field names.
use std::{cell::LazyCell, time::Duration};
use tr_core::canonical::Fingerprint;
use tracing::Level;

/// The target of all events.
pub const TARGET: &str = "tool_reliability";

/// One event. What is `None` is not known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record<'r> {
    pub(crate) event: &'static str,
    pub(crate) request_id: Option<&'r str>,
    pub(crate) tool_name: &'r str,
    pub(crate) session_key: Option<&'r str>,
    pub(crate) idempotency_key_hash: Option<Fingerprint>,
    pub(crate) correlation_id: Option<&'r str>,
    /// The state of the record of the call.
    pub(crate) state: Option<&'r str>,
    /// Counts from 1; 0 for a call that had no attempt.
    pub(crate) attempt: Option<u32>,
    pub(crate) elapsed: Option<Duration>,
    pub(crate) from_cache: Option<bool>,
    pub(crate) error_code: Option<&'r str>,
    pub(crate) retriable: Option<bool>,
    pub(crate) breaker_state: Option<&'static str>,
    /// Whether the decision was only reported, not applied.
    pub(crate) shadow: bool,
    /// Additional fields.
    pub(crate) extra: Extra<'r>,
}

/// Additional fields of some events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra<'r> {
    /// The failure's message, redacted.
    pub(crate) error: Option<&'r str>,
    pub(crate) delay: Option<Duration>,
    /// The part of it that the server asked for.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) from_state: Option<&'static str>,
    /// What was done to a session.
    pub(crate) action: Option<&'static str>,
    /// How many messages that removed from it.
    pub(crate) removed: Option<u64>,
    pub(crate) params: Option<&'r str>,
    pub(crate) params_bytes: Option<usize>,
    pub(crate) params_digest: Option<Fingerprint>,
}

/// UTEE's event of a call that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Invocation<'r> {
    pub(crate) request_id: Option<&'r str>,
    pub(crate) trace_id: Option<&'r str>,
    pub(crate) tool: &'r str,
    pub(crate) action: Option<&'r str>,
    pub(crate) elapsed: Duration,
    pub(crate) status: &'static str,
}

/// Whether a subscriber may want events.
#[inline]
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: TARGET, Level::WARN)
}

/// Emits an event. The record is built only if a subscriber reads its fields.
macro_rules! event {
    ($level:ident, $record:expr) => {{
        let it = LazyCell::new($record);
        let extra = LazyCell::new(|| it.extra);
        tracing::event!(
            target: TARGET,
            Level::$level,
            event = it.event,
            requestId = it.request_id,
            toolName = it.tool_name,
            sessionKey = it.session_key,
            idempotencyKeyHash = it.idempotency_key_hash.map(tracing::field::display),
            correlationId = it.correlation_id,
            state = it.state,
            attempt = it.attempt,
            elapsedMs = it.elapsed.map(millis),
            fromCache = it.from_cache,
            errorCode = it.error_code,
            retriable = it.retriable,
            breakerState = it.breaker_state,
            error = extra.error,
            delayMs = extra.delay.map(millis),
            retryAfterMs = extra.retry_after.map(millis),
            fromState = extra.from_state,
            action = extra.action,
            removedMessages = extra.removed,
            shadow = it.shadow.then_some(true),
            params = extra.params,
            paramsBytes = extra.params_bytes.map(|bytes| bytes as u64),
            paramsDigest = extra.params_digest.map(tracing::field::display),
        );
    }};
}

/// A normal event.
pub(crate) fn info<'r>(record: impl FnOnce() -> Record<'r>) {
    event!(INFO, record);
}

/// An event that an operator may need to see.
pub(crate) fn warn<'r>(record: impl FnOnce() -> Record<'r>) {
    event!(WARN, record);
}

impl Invocation<'_> {
    pub(crate) fn emit(&self) {
        tracing::event!(
            target: TARGET,
            Level::INFO,
            event = "tool_invocation",
            requestId = self.request_id,
            traceId = self.trace_id,
            tool = self.tool,
            action = self.action,
            durationMs = millis(self.elapsed),
            status = self.status,
        );
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
