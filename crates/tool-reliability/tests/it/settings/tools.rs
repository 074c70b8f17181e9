//! What is said of single tools.
use super::{
    bench::{Group, bench, rows},
    breakers as breaker, loops, records, retries,
};
use tool_reliability::{config::Live, telemetry::JsonLines};
use tr_core::{
    Effect, Params, Ran, ToolCall, ToolOutcome, Verdict, call::CallHints, manifest::Capability,
};
use tr_testkit::{
    calls::{answers, fails, reports},
    logs::Logs,
    tool::Step,
};
use tracing_subscriber::{layer::SubscriberExt as _, registry};

pub(crate) const ROWS: &[Group] = rows! {
    retries::starts(Effect::ReadOnly), r#"{"retry": {"jitter": [1, 1]}}"# {
        "tools.*.retry.attempts" = "2" => "0 250 700 1550" => "0 250";
        "tools.*.retry.base_ms" = "100" => "0 250 700 1550" => "0 150 400 850";
        "tools.*.retry.multiplier" = "3" => "0 250 700 1550" => "0 250 900 2750";
        "tools.*.retry.cap_ms" = "300" => "0 250 700 1550" => "0 250 600 950";
        "tools.*.retry.jitter" = "[0.5, 0.5]" => "0 250 700 1550" => "0 150 400 850";
        "tools.*.retry.max_elapsed_ms" = "700" => "0 250 700 1550" => "0 250 700";
        "tools.*.retry.only_codes" = "[\"timeout\"]" => "0 250 700 1550" => "0";
        "tools.*.max_attempts" = "2" => "0 250 700 1550" => "0 250";
        "tools.*.initial_delay_ms" = "100" => "0 250 700 1550" => "0 150 400 850";
        "tools.*.max_delay_ms" = "300" => "0 250 700 1550" => "0 250 600 950";
        "tools.*.capabilities" = "[\"own_retries\"]" => "0 250 700 1550" => "0";
        "tools.*.classification" = "{\"http_503\": \"permanent\"}" => "0 250 700 1550" => "0";
    }
    retries::starts(Effect::ReadOnly), "{}" {
        "tools.*.retry.jitter_percent" = "0" => "?" => "0 250 700 1550";
    }
    retries::attempts(Effect::Mutating, in_doubt()), "{}" {
        "tools.*.effect" = "\"read_only\"" => "1" => "4";
        "tools.*.retry_safe" = "true" => "1" => "4";
    }
    undeclared, "{}" {
        "undeclared_effect" = "\"read_only\"" => "1" => "4";
    }
    retries::hanging, r#"{"retry": {"attempts": 1}}"# {
        "tools.*.timeout_ms" = "50" => "timeout after 10000 ms" => "timeout after 50 ms";
    }
    retries::chunks, r#"{"retry": {"attempts": 1}}"# {
        "tools.*.idle_timeout_ms" = "30" => "timeout after 10000 ms" => "timeout after 30 ms";
    }
    retries::silent_failure, "{}" {
        "tools.*.silent_failures" = "false" => "not_ok" => "ok";
    }
    retries::attempts(Effect::ReadOnly, fails("busy", Verdict::Permanent, Ran::Yes)), "{}" {
        "tools.*.classification" = "{\"busy\": \"transient\"}" => "1" => "4";
    }
    retries::attempts(Effect::Mutating, reports("refused", "no")), "{}" {
        "tools.*.classification" = "{\"refused\": \"not_run\"}" => "1" => "4";
    }
    announced, r#"{"tools": {"t": {"effect": "read_only"}}}"# {
        "tools.*.capabilities" = "[\"streaming\"]" => "" => "streaming";
        "tools.*.capabilities" = "[\"caching\"]" => "" => "caching";
        "tools.*.capabilities" = "[\"idempotency\"]" => "" => "idempotency";
    }
    nothing, "{}" {
        "tools.*.null_is_success" = "true" => "empty_result" => "ok";
    }
    breaker::opens(Effect::Idempotent), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "tools.*.breaker.consecutive" = "3" => "5 calls, 30000 ms" => "3 calls, 30000 ms";
        "tools.*.breaker.cooldown_ms" = "700" => "5 calls, 30000 ms" => "5 calls, 700 ms";
    }
    breaker::one_in_four(Effect::Idempotent), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "tools.*.breaker.failure_rate" = "0.2" => "never" => "10 calls, 30000 ms";
    }
    breaker::first_call, "{}" {
        "tools.*.breaker.state" = "\"forced_open\"" => "ok" => "circuit_open";
    }
    breaker::names("{}"), "{}" {
        "tools.*.breaker.hint" = "\"global\"" => "t" => "global";
    }
    breaker::names(r#"{"url": "http://a"}"#), "{}" {
        "tools.*.breaker.hint" = "\"tool\"" => "t t http://a" => "t";
    }
    breaker::names("{}"), r#"{"tools": {"t": {"breaker": {"hint": "dependency"}}}}"# {
        "tools.*.dependency" = "\"gds\"" => "t" => "gds";
    }
    loops::same(loops::malformed()), r#"{"retry": {"attempts": 1}}"# {
        "tools.*.loops.max_identical" = "4" => "loop_detected at 3" => "loop_detected at 5";
    }
    loops::different, r#"{"retry": {"attempts": 1}}"# {
        "tools.*.loops.max_failures_per_turn" = "2" => "tool_error_limit at 6" => "tool_error_limit at 3";
    }
    loops::same(answers("ok")), "{}" {
        "tools.*.loops.calls_per_turn" = "4" => "none in 30" => "tool_call_limit at 5";
        "tools.*.loops.calls_per_session" = "4" => "none in 30" => "tool_call_limit at 5";
    }
    loops::same(answers("ok")), r#"{"loops": {"signals": {"enabled": true}}}"# {
        "tools.*.loops.repeats" = "3" => "loop_detected at 21" => "loop_detected at 7";
        "tools.*.loops.poll" = "true" => "loop_detected at 21" => "none in 30";
    }
    loops::but_for_one, r#"{"retry": {"attempts": 1}, "loops": {"max_failures_per_turn": 20}}"# {
        "tools.*.loops.loop_key" = "[\"job\"]" => "tool_error_limit at 21" => "loop_detected at 3";
    }
    records::later, "{}" {
        "tools.*.ttl.done_ms" = "50" => "ok, cached" => "ok, ok";
    }
    records::later_failures, "{}" {
        "tools.*.ttl.failed_ms" = "50" => "1 runs" => "2 runs";
    }
    records::stale, "{}" {
        "tools.*.ttl.inflight_ms" = "50" => "0 stale" => "1 stale";
    }
    records::unknown, r#"{"attempt_timeout_ms": 5}"# {
        "tools.*.ttl.unknown_ms" = "50" => "1 runs" => "2 runs";
    }
    records::params(r#"{"sentAt": 1}"#, r#"{"sentAt": 2}"#), "{}" {
        "tools.*.keys.volatile" = "[\"/sentAt\"]" => "ok, idempotency_conflict" => "ok, cached";
    }
    records::params(r#"{"retryCount": 1}"#, r#"{"retryCount": 2}"#), "{}" {
        "tools.*.keys.keep_volatile" = "true" => "ok, cached" => "ok, idempotency_conflict";
    }
    records::params(r#"{"text": "a b"}"#, r#"{"text": "a  b"}"#), "{}" {
        "tools.*.keys.any_whitespace" = "[\"/text\"]" => "ok, idempotency_conflict" => "ok, cached";
    }
    records::sessions, r#"{"tools": {"t": {"effect": "read_only"}}}"# {
        "tools.*.keys.scope" = "\"global\"" => "ok, ok" => "ok, cached";
    }
    secret_message, "{}" {
        "tools.*.sensitive" = "[\"pin\"]" => "pin 4711-xy" => "pin hidden";
    }
};

/// What tells tools apart, and what is for turns only.
pub(crate) const BY_DECLARATION: &[Group] = rows! {
    without_params, "{}" {
        "tools.*.input_schema" = "{\"required\": [\"path\"]}" => "ok" => "invalid_envelope";
    }
    renamed, r#"{"tools": {"t": {"effect": "read_only"}}}"# {
        "tools.*.name" = "\"u\"" => "t" => "u";
        "tools.*.action" = "\"read\"" => "t" => "t.read";
        "tools.*.namespace" = "\"shop\"" => "t" => "shop/t";
    }
    turns, "{}" {
        "tools.*.default_value" = "7" => "Normal" => "Normal, else 7";
        "tools.*.priority" = "\"high\"" => "Normal" => "High";
    }
};

/// A failure after which the tool may have run.
fn in_doubt() -> Step<ToolOutcome> {
    fails("http_503", Verdict::TRANSIENT, Ran::Unknown)
}

async fn undeclared(live: Live) -> String {
    let bench = bench(live, [in_doubt()]);
    let call = ToolCall::new("stranger", Params::empty_object()).session("s");
    bench.run(bench.live.catalog().manifested(call)).await;
    bench.handle.calls().to_string()
}

/// What a program learns of a tool before it calls it.
async fn announced(live: Live) -> String {
    let catalog = live.catalog();
    let manifest = catalog.find(None, "t", None).unwrap();
    let mut hints = CallHints::default();
    (hints.prefer_streaming, hints.cache_key) = (true, Some("k".into()));
    let can = [
        ("streaming", manifest.streams_for(&hints)),
        ("caching", manifest.cache_key_of(&hints).is_some()),
        ("idempotency", catalog.supports("t", Capability::Idempotency)),
    ];
    can.iter().filter(|(_, can)| *can).map(|(name, _)| *name).collect()
}

async fn nothing(live: Live) -> String {
    let bench = bench(live, [Step::Ok(ToolOutcome::success(serde_json::Value::Null))]);
    bench.run(bench.call(Effect::Mutating)).await
}

/// Whether a secret of the params is in what is logged of a failure.
async fn secret_message(live: Live) -> String {
    let (logs, _guard) = Logs::listen(|logs| registry().with(JsonLines::new(logs)));
    let bench = bench(live, [Step::err("the card 4711-xy was refused")]);
    bench.run(bench.call_with(Effect::Mutating, r#"{"pin": "4711-xy"}"#)).await;
    let is_shown = logs.text().contains("4711-xy");
    if is_shown { "pin 4711-xy" } else { "pin hidden" }.to_owned()
}

async fn without_params(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    bench.run(bench.call(Effect::Mutating)).await
}

/// Of which tool something is known.
async fn renamed(live: Live) -> String {
    let catalog = live.catalog();
    let known = [
        (None, "t", None),
        (None, "u", None),
        (None, "t", Some("read")),
        (Some("shop"), "t", None),
    ];
    let known = known.into_iter().filter(|(space, name, action)| {
        let manifest = catalog.find(*space, name, *action);
        manifest.is_some_and(|manifest| manifest.effect == Some(Effect::ReadOnly))
    });
    let named = known.map(|(space, name, action)| match (space, action) {
        (Some(space), _) => format!("{space}/{name}"),
        (None, Some(action)) => format!("{name}.{action}"),
        (None, None) => name.to_owned(),
    });
    named.collect::<Vec<_>>().join(" ")
}

/// What a turn reads of a declaration; tr-turn's tests show what it does with it.
async fn turns(live: Live) -> String {
    let manifest = live.catalog().find(None, "t", None).unwrap().clone();
    match &manifest.default_value {
        Some(value) => format!("{:?}, else {}", manifest.priority, value.get()),
        None => format!("{:?}", manifest.priority),
    }
}
