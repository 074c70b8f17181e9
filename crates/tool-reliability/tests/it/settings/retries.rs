//! What is said of calls, of the rollout and of retries.
use super::bench::{Group, bench, down, ms, rows};
use futures_util::{StreamExt, stream};
use tool_reliability::{Streaming, config::Live, streaming::stream_fn};
use tr_core::{
    BoxError,
    Effect::{self, Idempotent, Mutating, ReadOnly},
    ToolCall, ToolOutcome,
};
use tr_testkit::{calls::answers, tool::Step};

/// What is said of the calls of one effect.
macro_rules! by_effect {
    ($effect:ident, $name:literal) => {
        rows! {
            starts($effect), r#"{"retry": {"jitter": [1, 1]}}"# {
                (concat!("retry.", $name, ".attempts")) = "2" => "0 250 700 1550" => "0 250";
                (concat!("retry.", $name, ".base_ms")) = "100" => "0 250 700 1550" => "0 150 400 850";
                (concat!("retry.", $name, ".multiplier")) = "3" => "0 250 700 1550" => "0 250 900 2750";
                (concat!("retry.", $name, ".cap_ms")) = "300" => "0 250 700 1550" => "0 250 600 950";
                (concat!("retry.", $name, ".jitter")) = "[0.5, 0.5]" => "0 250 700 1550" => "0 150 400 850";
                (concat!("retry.", $name, ".max_elapsed_ms")) = "700" => "0 250 700 1550" => "0 250 700";
                (concat!("retry.", $name, ".only_codes")) = "[\"timeout\"]" => "0 250 700 1550" => "0";
                (concat!("rollout.", $name)) = "\"off\"" => "0 250 700 1550" => "0";
                (concat!("rollout.", $name, ".mode")) = "\"off\"" => "0 250 700 1550" => "0";
                (concat!("rollout.", $name, ".percent")) = "0" => "0 250 700 1550" => "0";
            }
            starts($effect), r#"{"retry": {"jitter": [1, 1]}, "rollout": {"read_only": {"percent": 0}, "idempotent": {"percent": 0}, "mutating": {"percent": 0}}}"# {
                (concat!("rollout.", $name, ".others")) = "\"enforce\"" => "0" => "0 250 700 1550";
            }
            starts($effect), "{}" {
                (concat!("retry.", $name, ".jitter_percent")) = "0" => "?" => "0 250 700 1550";
            }
        }
    };
}

pub(crate) const READ_ONLY: &[Group] = by_effect!(ReadOnly, "read_only");
pub(crate) const IDEMPOTENT: &[Group] = by_effect!(Idempotent, "idempotent");
pub(crate) const MUTATING: &[Group] = by_effect!(Mutating, "mutating");

pub(crate) const ROWS: &[Group] = rows! {
    starts(ReadOnly), r#"{"retry": {"jitter": [1, 1]}}"# {
        "retry.attempts" = "2" => "0 250 700 1550" => "0 250";
        "retry.base_ms" = "100" => "0 250 700 1550" => "0 150 400 850";
        "retry.multiplier" = "3" => "0 250 700 1550" => "0 250 900 2750";
        "retry.cap_ms" = "300" => "0 250 700 1550" => "0 250 600 950";
        "retry.max_elapsed_ms" = "700" => "0 250 700 1550" => "0 250 700";
        "retry.anchor" = "\"attempt_start\"" => "0 250 700 1550" => "0 200 600 1400";
        "retry.only_codes" = "[\"timeout\"]" => "0 250 700 1550" => "0";
        "retry.budget.capacity" = "1" => "0 250 700 1550" => "0 250";
        "rollout.mode" = "\"off\"" => "0 250 700 1550" => "0";
        "rollout.mode" = "\"shadow\"" => "0 250 700 1550" => "0";
        "rollout.percent" = "0" => "0 250 700 1550" => "0";
        "rollout.tools" = "{\"t\": \"off\"}" => "0 250 700 1550" => "0";
        "rollout.tools.*.mode" = "\"off\"" => "0 250 700 1550" => "0";
        "rollout.tools.*.percent" = "0" => "0 250 700 1550" => "0";
        "retry_opt_in.agents" = "[\"planner\"]" => "0 250 700 1550" => "0";
        "retry_opt_in.calls" = "true" => "0 250 700 1550" => "0";
    }
    starts(ReadOnly), r#"{"retry": {"jitter": [1, 1]}, "rollout": {"percent": 0}}"# {
        "rollout.others" = "\"enforce\"" => "0" => "0 250 700 1550";
    }
    starts(ReadOnly), r#"{"retry": {"jitter": [1, 1]}, "rollout": {"tools": {"t": {"percent": 0}}}}"# {
        "rollout.tools.*.others" = "\"enforce\"" => "0" => "0 250 700 1550";
    }
    starts(ReadOnly), "{}" {
        "retry.jitter" = "[1, 1]" => "?" => "0 250 700 1550";
        "retry.jitter_percent" = "0" => "?" => "0 250 700 1550";
    }
    attempts(ReadOnly, down()), "{}" {
        "preset" = "\"error_handling\"" => "4" => "5";
    }
    paid_retries, r#"{"retry": {"attempts": 2, "budget": {"capacity": 1}}}"# {
        "retry.budget.per_success" = "1" => "2 attempts, then 1" => "2 attempts, then 2";
    }
    own_words, "{}" {
        "normalise" = "false" => "unclassified" => "boom";
    }
    silent_failure, "{}" {
        "normalise" = "false" => "not_ok" => "ok";
        "silent_failures" = "false" => "not_ok" => "ok";
    }
    hanging, r#"{"retry": {"attempts": 1}}"# {
        "attempt_timeout_ms" = "50" => "timeout after 10000 ms" => "timeout after 50 ms";
        "deadline_ms" = "20" => "timeout after 10000 ms" => "timeout after 20 ms";
    }
    chunks, r#"{"retry": {"attempts": 1}}"# {
        "idle_timeout_ms" = "30" => "timeout after 10000 ms" => "timeout after 30 ms";
    }
};

/// A call of which each attempt fails after 50 ms.
pub(crate) async fn starts(live: Live, effect: Effect) -> String {
    let bench = bench(live, [Step::after(ms(50), down())]);
    let call = bench.call(effect);
    bench.starts(call).await
}

/// A failing call empties the budget, a success pays for the next.
async fn paid_retries(live: Live) -> String {
    let bench = bench(live, [down(), down(), answers("ok"), down()]);
    let call = |n: u32| bench.call_with(ReadOnly, &format!(r#"{{"n": {n}}}"#));
    bench.run(call(0)).await;
    let first = bench.handle.calls();
    bench.run(call(1)).await;
    bench.run(call(2)).await;
    format!("{first} attempts, then {}", bench.handle.calls() - first - 1)
}

async fn own_words(live: Live) -> String {
    let bench = bench(live, [Step::err("boom")]);
    bench.run(bench.call(Mutating)).await
}

pub(crate) async fn silent_failure(live: Live) -> String {
    let failed = ToolOutcome::success(serde_json::json!({"ok": false}));
    let bench = bench(live, [Step::Ok(failed)]);
    bench.run(bench.call(Mutating)).await
}

pub(crate) async fn hanging(live: Live) -> String {
    let bench = bench(live, [Step::Hang]);
    bench.timed(bench.call(ReadOnly)).await
}

/// A tool whose answer stops after its first chunk.
pub(crate) async fn chunks(live: Live) -> String {
    let tool = stream_fn(|_: ToolCall| {
        stream::iter(["one"]).map(Ok::<_, BoxError>).chain(stream::pending())
    });
    let tool = Streaming::new(live.stack().service(tool));
    let call = live.catalog().manifested(ToolCall::new("t", tr_core::Params::empty_object()));
    let began = tokio::time::Instant::now();
    let outcomes: Vec<_> = tool.stream(call).collect().await;
    let end = crate::settings::bench::word(Ok(outcomes.into_iter().next_back().unwrap()));
    format!("{end} after {} ms", began.elapsed().as_millis())
}

/// How many attempts a call has of which each fails so.
pub(crate) async fn attempts(live: Live, effect: Effect, step: Step<ToolOutcome>) -> String {
    let bench = bench(live, [step]);
    bench.run(bench.call(effect)).await;
    bench.handle.calls().to_string()
}
