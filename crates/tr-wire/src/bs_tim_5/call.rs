//! The call's envelope, and the call that it asks for.
use crate::{
    Arrival, InvalidEnvelope,
    read::{Count, Flag, List, Map, Maybe, Millis, Name, Shape as _, Text, Word, object},
    utee::{CallParams, Options},
};
use std::time::Duration;
use tr_core::{BreakerHint, CallParts, DedupeMode, Params, RetryOverride, ToolCall, ToolId};

object! { open
    /// A request to run one tool, as BS-TIM-5 v1.1 sends it.
    pub struct ToolCallEnvelope {
        const "contractVersion" = "1.1";
        /// Names this request: a UUIDv7 or a ULID.
        "requestId" => request_id: Box<str>, Name;
        /// The id that the model gave to the call.
        "toolCallId" => tool_call_id: Option<Box<str>>, Maybe<Text>;
        /// The tool's name.
        "toolName" => tool_name: Box<str>, Name;
        /// Where the name is unique, such as `agents.tools.messaging`; empty for none.
        "toolNamespace" => tool_namespace: Box<str>, Text;
        /// On whose behalf.
        "target" => target: Target, Target;
        /// What the tool is asked for.
        "payload" => payload: Payload, Payload;
        /// How the call is deduplicated and retried.
        "transport" => transport: Transport, Transport;
        /// By when, and where it comes from.
        "control" => control: Control, Control;
        /// Where the call stands in a trace.
        "trace" => trace: Trace, Trace;
    }
}

object! { open
    /// On whose behalf a call is made.
    pub struct Target {
        /// The agent.
        "agentId" => agent_id: Option<Box<str>>, Maybe<Text>;
        /// The session.
        "sessionKey" => session_key: Box<str>, Name;
        /// The user or account.
        "actorId" => actor_id: Box<str>, Name;
        /// The workspace.
        "workspaceId" => workspace_id: Option<Box<str>>, Maybe<Text>;
        /// Ties calls of one business operation together.
        "correlationId" => correlation_id: Option<Box<str>>, Maybe<Text>;
        /// The tenant.
        "tenantId" => tenant_id: Option<Box<str>>, Maybe<Text>;
    }
}

object! { open
    /// What a tool is asked for.
    pub struct Payload {
        const "version" = "1.0";
        /// The tool's params, as text that stays as it came. `_utee` in them is for us, and is
        /// taken out before the tool sees them.
        "params" => params: Params, CallParams;
        /// The caller's key: a repeat with it is the same call.
        "idempotencyKey" => idempotency_key: Option<Box<str>>, Maybe<Name>;
        /// What the caller knows of the call.
        "callHints" => call_hints: Option<CallHints>, Maybe<CallHints>;
    }
}

object! { open
    /// What the caller knows of a call.
    pub struct CallHints {
        /// Never retry it once it may have run.
        "safetyCritical" => safety_critical: Option<bool>, Maybe<Flag>;
        /// A repeat is safe even if an earlier attempt ran.
        "expectedRetrySafe" => expected_retry_safe: Option<bool>, Maybe<Flag>;
        /// How long one attempt may take, in milliseconds.
        "timeoutMs" => timeout_ms: Option<u64>, Maybe<Millis<1>>;
    }
}

object! { open
    /// How a call is deduplicated and retried.
    pub struct Transport {
        /// What to do with a repeated key.
        "dedupeMode" => dedupe_mode: DedupeMode, Word<DedupeMode>;
        /// The limits of its retries.
        "retryBudget" => retry_budget: RetryBudget, RetryBudget;
        /// Which calls share its breaker.
        "circuitBreakerHint" => circuit_breaker_hint: Option<BreakerHint>, Maybe<Word<BreakerHint>>;
    }
}

object! { open
    /// The limits of a call's retries.
    pub struct RetryBudget {
        /// Attempts in all, the first included; at most 1000.
        "maxAttempts" => max_attempts: u32, Count<1000>;
        /// Milliseconds after the first attempt within which the last may start.
        "maxElapsedMs" => max_elapsed_ms: u64, Millis<0>;
    }
}

object! { open
    /// By when a call is wanted, and where it comes from.
    #[derive(Default)]
    pub struct Control {
        /// When the answer is of no use any more, in milliseconds since the Unix epoch.
        "deadlineAtMs" => deadline_at_ms: Option<u64>, Maybe<Millis<0>>;
        /// Labels of the caller's own.
        "requestTags" => request_tags: Option<Vec<Box<str>>>, Maybe<List<Text>>;
        /// The hook that made the call.
        "fromHook" => from_hook: Option<Box<str>>, Maybe<Text>;
    }
}

object! { open
    /// Where a call stands in a trace.
    #[derive(Default)]
    pub struct Trace {
        /// W3C `traceparent`.
        "traceparent" => traceparent: Option<Box<str>>, Maybe<Text>;
        /// W3C baggage.
        "baggage" => baggage: Option<Vec<(Box<str>, Box<str>)>>, Maybe<Map<Text>>;
    }
}

envelope! { Canonical
    /// Names every fault of the text, those inside the params included: without a canonical
    /// form, a call cannot be compared with its repeat. The tool did not run.
    ToolCallEnvelope
}

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
        Options::or(own, utee.unwrap_or_default()).apply(&mut parts);
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
