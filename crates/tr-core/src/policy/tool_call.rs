//! [`DefaultPolicy`] for tool calls.
use crate::{
    CallInfo, Cancellation, Capability, CloneRequest, DedupeMode, DedupeScope, DefaultPolicy,
    Effect, FencingToken, KeyRef, RecordRef, RequestPolicy, RetryOverrides, ToolCall,
    internal::CoarseInstant,
    manifest::{BreakerOverride, TtlOverride},
};
#[cfg(feature = "keys")]
use crate::{
    DedupeKey, Derive, InvalidKey,
    canonical::{Fingerprint, FingerprintKey},
};
use std::{
    any::Any,
    time::{Duration, Instant},
};

impl RequestPolicy<ToolCall> for DefaultPolicy {
    #[inline]
    fn key<'r>(&self, call: &'r ToolCall) -> KeyRef<'r> {
        call.parts().tool.key()
    }

    #[inline]
    fn breaker_key<'r>(&self, call: &'r ToolCall) -> KeyRef<'r> {
        call.breaker_key()
    }

    fn breaker_override(&self, call: &ToolCall) -> BreakerOverride {
        call.manifest().map_or_else(BreakerOverride::default, |tool| tool.breaker)
    }

    #[inline]
    fn info<'r>(&self, call: &'r ToolCall) -> CallInfo<'r> {
        let parts = call.parts();
        let mut info = CallInfo::of(parts.tool.full_name());
        info.request_id = parts.request_id.as_deref();
        info.tool_call_id = parts.tool_call_id.as_deref();
        info.session = parts.context.session.as_deref();
        info.correlation = parts.context.correlation.as_deref();
        info.attempt = call.attempt();
        info.effect = self.effect(call);
        info.repeat_safe = self.is_repeat_safe(call);
        info.sensitive = call.sensitive();
        info
    }

    #[inline]
    fn effect(&self, call: &ToolCall) -> Effect {
        call.parts().effect
    }

    fn is_effect_declared(&self, call: &ToolCall) -> bool {
        call.parts().effect_declared
    }

    fn is_repeat_safe(&self, call: &ToolCall) -> Option<bool> {
        let hints = &call.parts().hints;
        let of_tool = call.manifest().and_then(|tool| tool.retry_safe);
        if hints.safety_critical || of_tool == Some(false) {
            return Some(false);
        }
        hints.expected_retry_safe.then_some(true).or(of_tool)
    }

    fn retry_overrides<'r>(&self, call: &'r ToolCall) -> RetryOverrides<'r> {
        RetryOverrides {
            call: call.parts().retry.as_ref(),
            tool: call.manifest().and_then(|tool| tool.retry.as_ref()),
        }
    }

    fn agent<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        call.parts().context.agent.as_deref()
    }

    fn retries_itself(&self, call: &ToolCall) -> bool {
        call.manifest().is_some_and(|tool| tool.can(Capability::OwnRetries))
    }

    #[inline]
    fn deadline(&self, call: &ToolCall) -> Option<Instant> {
        call.parts().deadline
    }

    fn set_deadline(&self, call: &mut ToolCall, deadline: Instant) {
        call.set_deadline(deadline);
    }

    fn cancellation<'r>(&self, call: &'r ToolCall) -> Option<&'r dyn Cancellation> {
        call.parts().cancellation.as_deref()
    }

    #[inline]
    fn attempt_timeout(&self, call: &ToolCall) -> Option<Duration> {
        call.parts().hints.timeout.or_else(|| call.manifest()?.timeout)
    }

    fn idle_timeout(&self, call: &ToolCall) -> Option<Duration> {
        call.manifest()?.idle_timeout
    }

    #[inline]
    fn chunks<'r, C: Any>(&self, call: &'r ToolCall) -> Option<&'r C> {
        (call.parts().chunks.as_ref()? as &dyn Any).downcast_ref()
    }

    fn end_attempt(&self, call: &ToolCall, attempt: u32) -> bool {
        call.parts().chunks.as_ref().is_some_and(|chunks| chunks.end_attempt(attempt))
    }

    #[inline]
    fn attempt(&self, call: &ToolCall) -> u32 {
        call.attempt()
    }

    #[inline]
    fn set_attempt(&self, call: &mut ToolCall, attempt: u32) {
        call.set_attempt(attempt);
    }

    #[inline]
    fn stamp(&self, call: &ToolCall) -> Option<CoarseInstant> {
        call.stamp()
    }

    #[inline]
    fn set_stamp(&self, call: &mut ToolCall, now: Option<CoarseInstant>) {
        call.set_stamp(now);
    }

    #[cfg(feature = "keys")]
    #[inline]
    fn idempotency_key(&self, call: &ToolCall) -> Result<Option<DedupeKey>, InvalidKey> {
        call.id()
    }

    #[inline]
    fn dedupe_mode(&self, call: &ToolCall) -> DedupeMode {
        call.parts().idempotency.mode
    }

    #[cfg(feature = "keys")]
    #[inline]
    fn corrects(&self, call: &ToolCall) -> bool {
        call.is_identified()
    }

    #[inline]
    fn scope(&self, call: &ToolCall) -> DedupeScope {
        call.parts().idempotency.scope
    }

    #[inline]
    fn has_scope(&self, call: &ToolCall) -> bool {
        let parts = call.parts();
        parts.context.session.is_some()
            || parts.idempotency.scope == DedupeScope::Global
            || parts.idempotency.id.is_some()
    }

    #[cfg(feature = "keys")]
    fn derived_key(&self, call: &ToolCall, from: Derive) -> Result<Option<DedupeKey>, InvalidKey> {
        call.derived_id(from)
    }

    #[inline]
    fn record_ttls(&self, call: &ToolCall) -> TtlOverride {
        let tool = call.manifest().map(|tool| tool.ttls).unwrap_or_default();
        call.parts().idempotency.ttls.or(tool)
    }

    #[inline]
    fn stays_in_process(&self, call: &ToolCall) -> bool {
        call.parts().idempotency.in_process
    }

    fn note_claim(&self, call: &mut ToolCall, claim: FencingToken) {
        call.set_fencing_token(claim);
    }

    #[inline]
    fn record<'r>(&self, call: &'r ToolCall) -> RecordRef<'r> {
        let parts = call.parts();
        let (idempotency, actor) = (&parts.idempotency, parts.context.actor.as_deref());
        RecordRef {
            key: idempotency.key.as_deref(),
            actor,
            session: idempotency.record_session.as_deref(),
            about: idempotency.about.as_deref(),
        }
    }

    fn action<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        call.parts().tool.action()
    }

    /// Of the key with all that scopes it, as records name it.
    #[cfg(feature = "keys")]
    fn key_fingerprint(&self, call: &ToolCall, key: &FingerprintKey) -> Option<Fingerprint> {
        let id = call.id().ok().flatten()?;
        Some(key.fingerprint(id.key))
    }

    fn params<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        Some(call.parts().params.get())
    }

    fn sensitive_fields<'r>(&self, call: &'r ToolCall) -> &'r [Box<str>] {
        call.manifest().map(|tool| &*tool.sensitive).unwrap_or_default()
    }

    fn traceparent<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        call.parts().trace.traceparent.as_deref()
    }

    fn trace_id<'r>(&self, call: &'r ToolCall) -> Option<&'r str> {
        call.parts().trace.trace_id.as_deref()
    }
}

impl CloneRequest<ToolCall> for DefaultPolicy {
    #[inline]
    fn clone_request(&self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }
}
