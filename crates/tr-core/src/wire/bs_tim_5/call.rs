//! The call's envelope.
use crate::{
    BreakerHint, DedupeMode, Json, Params,
    wire::{
        InvalidEnvelope,
        params::CallParams,
        read::{
            self, Count, Flag, List, Map, Maybe, Millis, Name, Strictness, Text, Word, object,
            words,
        },
    },
};

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

words! {
    DedupeMode { Enforced = "enforced" | "enabled", BestEffort = "bestEffort", Disabled = "disabled" }
    BreakerHint { Tool = "tool", Dependency = "dependency", Global = "global" }
}

impl ToolCallEnvelope {
    /// Reads an envelope.
    ///
    /// # Errors
    /// Names every fault of the text, those inside the params included: without a canonical
    /// form, a call cannot be compared with its repeat. The tool did not run.
    pub fn read(json: impl AsRef<[u8]>) -> Result<Self, InvalidEnvelope> {
        read::document::<Self>("ToolCallEnvelope", json.as_ref(), Strictness::Canonical)
    }

    /// The envelope as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::from_value(self).expect("names are strings")
    }
}
