//! The set `openclaw_tool_…`.
use super::bound::{Count, Ended, Times, instruments, millis, scope_label};
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Gauge, Histogram},
};
use std::sync::OnceLock;
use tr_core::{Effect, Status};

/// Bounds of the buckets, in milliseconds: the usual ones, with the default deadlines of an
/// attempt (10 s) and of a call (30 s) among them.
const BUCKETS: [f64; 15] = [
    5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0,
    10000.0, 30000.0,
];

// Counters are named without `_total`, and nothing has a unit, because exporters for Prometheus add both to the name.
instruments! {
    calls: Counter<u64> = u64_counter("openclaw_tool_calls", "Tool calls by their end");
    duration: Histogram<f64> = f64_histogram(
        "openclaw_tool_call_duration_ms",
        "Time of a tool call with all its attempts, in milliseconds"
    ).with_boundaries(BUCKETS.to_vec());
    retries: Counter<u64> =
        u64_counter("openclaw_tool_retry_attempts", "Retries by what failed before");
    hits: Counter<u64> =
        u64_counter("openclaw_tool_idempotency_hits", "Calls whose key was known already");
    state: Gauge<u64> = u64_gauge(
        "openclaw_tool_circuit_breaker_state",
        "1 for the state that the breaker is in"
    );
    transitions: Counter<u64> =
        u64_counter("openclaw_tool_circuit_breaker_transitions", "Changes of a breaker's state");
    uncounted: Counter<u64> = u64_counter(
        "openclaw_tool_circuit_breaker_uncounted",
        "Calls that passed without a breaker, since there is no room for another"
    );
    sessions: Counter<u64> = u64_counter(
        "openclaw_tool_session_events",
        "Transcripts repaired, rolled back or kept from the model because of a failure"
    );
    shadow_calls: Counter<u64> =
        u64_counter("openclaw_tool_shadow_calls", "Tool calls in shadow mode");
    decisions: Counter<u64> = u64_counter(
        "openclaw_tool_shadow_decisions",
        "What enforcing would have done to calls, and was not done"
    );
    info: Gauge<u64> = u64_gauge("openclaw_tool_info", "1 for what the tool does to the world");
    chunks: Counter<u64> =
        u64_counter("openclaw_tool_stream_chunks", "Chunks of streamed answers");
}

const STATUSES: usize = 6;

#[derive(Default)]
pub(super) struct Series {
    calls: [[OnceLock<Count>; STATUSES]; 2],
    duration: [OnceLock<Times>; STATUSES],
    info: [OnceLock<()>; 3],
}

impl Series {
    #[inline]
    pub(super) fn ended(&self, set: &Instruments, tool: impl Fn() -> KeyValue, end: &Ended<'_>) {
        let (status, scope) = (end.status as usize, end.scope as usize);
        let label = |status: Status| KeyValue::new("status", status.as_str());
        let calls = self.calls[scope][status].get_or_init(|| {
            let scope = KeyValue::new("scope", scope_label(end.scope));
            Count::new(&set.calls, &[tool(), label(end.status), scope])
        });
        let duration = self.duration[status]
            .get_or_init(|| Times::new(&set.duration, &[tool(), label(end.status)]));
        calls.add(1);
        duration.record(millis(end.elapsed));
        let (at, effect) = match end.effect {
            Effect::ReadOnly => (0, "read_only"),
            Effect::Idempotent => (1, "idempotent"),
            Effect::Mutating => (2, "mutating"),
        };
        self.info[at].get_or_init(|| {
            set.info.record(1, &[tool(), KeyValue::new("effect", effect)]);
        });
    }
}
