//! Envelopes with every field of their documents.
use tr_core::canonical;

/// All of BS-TIM-5's `ToolCallEnvelope`, v1.1.
pub(crate) const CALL: &str = r#"{
    "contractVersion": "1.1",
    "requestId": "0190b3c4-0000-7000-8000-000000000001",
    "toolCallId": "toolu_01",
    "toolName": "message",
    "toolNamespace": "agents.tools.messaging",
    "target": {
        "agentId": "larry", "sessionKey": "s-1", "actorId": "ada", "workspaceId": "w-1",
        "correlationId": "c-1", "tenantId": "t-1"
    },
    "payload": {
        "version": "1.0",
        "params": {"to": "bob", "snowflake": 9007199254740993, "nested": {"z": 1, "a": [1.50, null]}},
        "idempotencyKey": "k-1",
        "callHints": {"safetyCritical": true, "expectedRetrySafe": false, "timeoutMs": 2500}
    },
    "transport": {
        "dedupeMode": "bestEffort",
        "retryBudget": {"maxAttempts": 4, "maxElapsedMs": 30000},
        "circuitBreakerHint": "dependency"
    },
    "control": {"deadlineAtMs": 1700000060000, "requestTags": ["a", "b"], "fromHook": "before"},
    "trace": {
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "baggage": {"user": "ada", "region": "eu"}
    }
}"#;

/// What BS-TIM-5 requires of a `ToolCallEnvelope`, and nothing else.
pub(crate) const BARE_CALL: &str = r#"{
    "contractVersion": "1.1", "requestId": "r", "toolName": "search", "toolNamespace": "web",
    "target": {"sessionKey": "s", "actorId": "a"},
    "payload": {"version": "1.0", "params": {}},
    "transport": {"dedupeMode": "enforced", "retryBudget": {"maxAttempts": 1, "maxElapsedMs": 0}},
    "control": {}, "trace": {}
}"#;

/// All of BS-TIM-5's `ToolResultEnvelope`.
pub(crate) const RESULT: &str = r#"{
    "requestId": "r-1", "status": "circuit_open", "fromCache": true,
    "cache": {"matchedOn": "completed", "ageMs": 1200, "keyFingerprint": "00f067aa0ba902b7"},
    "toolName": "message", "durationMs": 12.5, "attempts": 3,
    "output": {"content": {"partial": [1, 2]}, "metadata": {"region": "eu"}},
    "error": {
        "code": "circuit_open", "message": "the breaker is open", "retriable": true,
        "terminal": false, "breakerState": "HALF_OPEN"
    },
    "retriedBy": [
        {"attempt": 1, "delayMs": 200, "reasonCode": "http_503", "latencyMs": 31},
        {"attempt": 2, "delayMs": 380.25, "reasonCode": "timeout", "latencyMs": 10000}
    ]
}"#;

/// All of UTEE's `ToolRequest`.
pub(crate) const REQUEST: &str = r#"{
    "tool": "exec", "action": "run", "params": {"command": "git status", "big": 12345678901234567890},
    "requestId": "abc123", "idempotencyKey": "git-status-repo-x", "timeout": 5000, "priority": "high",
    "traceId": "trace-456", "spanId": "span-1", "parentSpanId": "span-0",
    "hints": {
        "preferStreaming": true, "cacheKey": "status",
        "retryPolicy": {
            "maxAttempts": 2, "initialDelayMs": 100, "maxDelayMs": 5000, "backoffMultiplier": 2.0,
            "jitterPercent": 20, "retryableErrors": ["rate_limit"]
        }
    }
}"#;

/// All of UTEE's `ToolResponse`, as a chunk.
pub(crate) const RESPONSE: &str = r#"{
    "requestId": "abc123", "status": "partial", "result": {"lines": ["a"]},
    "durationMs": 1523, "toolVersion": "2.1.0", "spanId": "span-1", "emittedSpans": ["span-2"],
    "isStreaming": true, "chunkIndex": 3, "finalChunk": false
}"#;

/// UTEE's `ToolResponse` of a failure.
pub(crate) const FAILED_RESPONSE: &str = r#"{
    "requestId": "abc123", "status": "error", "durationMs": 7,
    "error": {
        "code": "rate_limit", "message": "Rate limit exceeded (429)", "retryable": true,
        "details": {"limit": 10}
    }
}"#;

/// Whether two texts mean the same JSON.
#[track_caller]
pub(crate) fn assert_same(ours: &str, theirs: &str) {
    let canonical = |text: &str| canonical::to_string(text).unwrap();
    assert_eq!(canonical(ours), canonical(theirs));
}
