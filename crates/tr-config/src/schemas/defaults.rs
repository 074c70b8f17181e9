//! The defaults of a configuration, written as a configuration. `tool-guard config show` and the published
//! schema print them; a test compares them with the stack's own defaults.
use crate::stack::Preset;
use serde_json::{Value, json};

/// The defaults of a configuration with this preset. A key without a default is not there. A stack that is
/// configured with exactly these settings equals one that is configured with the preset alone.
#[must_use]
pub fn defaults(preset: Preset) -> Value {
    let mut all = json!({
        "preset": preset.name(),
        "rollout": { "mode": "enforce", "percent": 100, "others": "off" },
        "normalise": true,
        "silent_failures": true,
        "attempt_timeout_ms": 10_000,
        "retry": {
            "attempts": 4,
            "base_ms": 200,
            "multiplier": 2,
            "cap_ms": 4_000,
            "jitter": [0, 1],
            "anchor": "attempt_end",
            "max_elapsed_ms": 30_000,
            "only_codes": [],
        },
        "retry_opt_in": { "calls": false },
        "breaker": {
            "consecutive": 5,
            "failure_rate": 0.5,
            "window": 20,
            "min_calls": 10,
            "rolling_ms": 120_000,
            "cooldown_ms": 30_000,
            "max_probes": 1,
            "successes_to_close": 2,
            "count_rate_limits": true,
            "mode": "enforce",
            "forced_open": false,
            "capacity": 10_000,
            "read_only": { "consecutive": 8, "cooldown_ms": 20_000 },
            "mutating": { "failure_rate": 0.3, "cooldown_ms": 15_000 },
        },
        "idempotency": {
            "derived_keys": "step",
            "conflicts": "reject",
            "capacity": 25_000,
            "max_waiters": 1_024,
            "max_wait_ms": 30_000,
            "max_record_bytes": 1_048_576,
            "max_kept_bytes": 67_108_864,
            "done_ttl_ms": 86_400_000,
            "failed_ttl_ms": 300_000,
            "inflight_ttl_ms": 120_000,
            "unknown_ttl_ms": 86_400_000,
            "cut_off_grace_ms": 60_000,
            "when_store_fails": { "read_only": "run", "idempotent": "run", "mutating": "refuse" },
            "store_timeout_ms": 1_000,
            "probe_timeout_ms": 30_000,
        },
        "loops": {
            "enabled": true,
            "mode": "block",
            "max_identical": 2,
            "max_failures_per_turn": 5,
            "signals": false,
            "memory_ms": 60_000,
            "max_turns": 10_000,
        },
        "telemetry": {
            "names": ["openclaw"],
            "max_unknown_tools": 100,
            "params_shape": false,
            "show_params": {},
            "hide": [],
        },
        "records": { "where": "memory", "bodies": "full" },
        "undeclared_effect": "mutating",
    });
    match preset {
        Preset::ToolReliability => {}
        Preset::ErrorHandling => {
            all["attempt_timeout_ms"] = json!(30_000);
            all["retry"] = json!({
                "attempts": 5,
                "base_ms": 100,
                "multiplier": 2,
                "cap_ms": "none",
                "jitter": [0.9, 1.1],
                "anchor": "attempt_start",
                "max_elapsed_ms": "none",
                "only_codes": [],
            });
            let breaker = &mut all["breaker"];
            breaker["successes_to_close"] = json!(1);
            if let Some(breaker) = breaker.as_object_mut() {
                breaker.remove("read_only");
                breaker.remove("mutating");
            }
        }
        Preset::Utee => {
            all["attempt_timeout_ms"] = json!("none");
            all["retry"] = json!({
                "attempts": 3,
                "base_ms": 100,
                "multiplier": 2,
                "cap_ms": 5_000,
                "jitter": [0.8, 1.2],
                "anchor": "attempt_end",
                "max_elapsed_ms": "none",
                "only_codes": [],
            });
        }
    }
    all
}

/// The defaults of the sections that are off unless a configuration has them: each section's path
/// (`retry.budget`), and its keys.
#[must_use]
pub fn section_defaults() -> Vec<(&'static str, Value)> {
    vec![
        ("retry.budget", json!({ "per_success": 0.1, "capacity": 20 })),
        (
            "loops.signals",
            json!({
                "enabled": true,
                "repeats": 10,
                "failing_repeats": 5,
                "rounds": 3,
                "same_error": 3,
                "pace_ms": 10_000,
                "quiet_ms": 3_600_000,
                "count_transient": false,
                "refuse": true,
                "volatile": [],
            }),
        ),
        (
            "sessions",
            json!({
                "format": "anthropic_messages",
                "mode": "preserve",
                "enabled": true,
                "validate_before_call": true,
                "auto_repair": false,
                "checkpoint_retention": 10,
                "snapshot_messages": false,
                "verbose": false,
                "where": "memory",
                "when_store_fails": "refuse",
            }),
        ),
    ]
}
