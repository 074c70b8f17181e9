//! From the call's envelope to the call.
use super::ToolCallEnvelope;
use crate::{
    CallParts, RetryOverride, ToolCall, ToolId,
    wire::{Arrival, InvalidEnvelope, utee::Options},
};
use std::time::Duration;

impl ToolCallEnvelope {
    /// The call that this envelope asks for.
    ///
    /// `_utee` is taken out of the params. Where it and the envelope speak of the same thing, the
    /// envelope is heard; of two limits on attempts the lower one.
    ///
    /// # Errors
    /// If `_utee` does not have its form, which [`read`](Self::read) has checked. The tool did
    /// not run.
    pub fn into_call(self, arrival: Arrival) -> Result<ToolCall, InvalidEnvelope> {
        let (target, transport, control) = (self.target, self.transport, self.control);
        let (params, utee) = Options::take(&self.payload.params)?;
        let hints = self.payload.call_hints;
        let own = Options {
            request_id: Some(self.request_id),
            idempotency_key: self.payload.idempotency_key,
            timeout: hints.as_ref().and_then(|hints| hints.timeout_ms),
            ..Options::default()
        };
        let namespace = Some(&*self.tool_namespace).filter(|namespace| !namespace.is_empty());
        let tool = ToolId::from_parts(namespace, &self.tool_name, None);

        let mut parts = CallParts::new(tool, params);
        own.or(utee.unwrap_or_default()).apply(&mut parts);
        parts.tool_call_id = self.tool_call_id;
        parts.context.session = Some(target.session_key);
        parts.context.actor = Some(target.actor_id);
        parts.context.tenant = target.tenant_id;
        parts.context.workspace = target.workspace_id;
        parts.context.agent = target.agent_id;
        parts.context.correlation = target.correlation_id;
        parts.idempotency.mode = transport.dedupe_mode;
        let budget = transport.retry_budget;
        let retry = parts.retry.get_or_insert_default();
        limit(retry, budget.max_attempts, Duration::from_millis(budget.max_elapsed_ms));
        parts.breaker = transport.circuit_breaker_hint;
        if let Some(hints) = hints {
            parts.hints.safety_critical = hints.safety_critical.unwrap_or(false);
            parts.hints.expected_retry_safe = hints.expected_retry_safe.unwrap_or(false);
        }
        parts.deadline = control.deadline_at_ms.and_then(|at| arrival.instant_of(at));
        parts.tags = control.request_tags.unwrap_or_default();
        parts.from_hook = control.from_hook;
        parts.trace.traceparent = self.trace.traceparent;
        parts.trace.baggage = self.trace.baggage.unwrap_or_default();
        Ok(parts.into())
    }
}

fn limit(retry: &mut RetryOverride, attempts: u32, elapsed: Duration) {
    retry.attempts = Some(retry.attempts.map_or(attempts, |own| own.min(attempts)));
    retry.max_elapsed = Some(elapsed);
}
