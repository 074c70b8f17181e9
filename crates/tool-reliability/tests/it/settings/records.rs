//! What is said of records.
use super::bench::{Bench, Group, bench, ms, rows, word};
use tokio::time::sleep;
use tool_reliability::config::Live;
use tower::ServiceExt;
use tr_core::{Effect, Ran, ToolCall, Verdict};
use tr_testkit::{
    calls::{answers, fails},
    tool::Step,
};

pub(crate) const ROWS: &[Group] = rows! {
    repeats, "{}" {
        "idempotency.derived_keys" = "\"session\"" => "ok, ok" => "ok, cached";
    }
    one_step, "{}" {
        "idempotency.derived_keys" = "\"cut_off\"" => "ok, cached" => "ok, ok";
    }
    cut_off, "{}" {
        "idempotency.derived_keys" = "\"off\"" => "1 runs" => "2 runs";
    }
    conflict, "{}" {
        "idempotency.conflicts" = "\"independent\"" => "ok, idempotency_conflict" => "ok, ok";
    }
    two_keys_and_the_first_again, "{}" {
        "idempotency.capacity" = "1" => "ok, ok, cached" => "ok, ok, ok";
    }
    waiting, "{}" {
        "idempotency.max_waiters" = "1" => "ok 500, cached 500, cached 500" => "ok 500, cached 500, idempotency_in_flight 0";
        "idempotency.max_wait_ms" = "10" => "ok 500, cached 500, cached 500" => "ok 500, idempotency_in_flight 10, idempotency_in_flight 10";
    }
    long_answers, "{}" {
        "idempotency.max_record_bytes" = "100" => "ok, cached" => "ok, answer_not_kept";
        "idempotency.max_kept_bytes" = "100" => "ok, cached" => "ok, answer_not_kept";
    }
    later, "{}" {
        "idempotency.done_ttl_ms" = "50" => "ok, cached" => "ok, ok";
    }
    later_failures, "{}" {
        "idempotency.failed_ttl_ms" = "50" => "1 runs" => "2 runs";
    }
    stale, "{}" {
        "idempotency.inflight_ttl_ms" = "50" => "0 stale" => "1 stale";
    }
    unknown, r#"{"attempt_timeout_ms": 5}"# {
        "idempotency.unknown_ttl_ms" = "50" => "1 runs" => "2 runs";
    }
    cut_off, r#"{"idempotency": {"derived_keys": "cut_off"}}"# {
        "idempotency.cut_off_grace_ms" = "50" => "1 runs" => "2 runs";
    }
};

pub(crate) fn keyed(bench: &Bench, effect: Effect) -> ToolCall {
    bench.call(effect).idempotency_key("k")
}

/// A call, twice.
async fn twice(bench: Bench, call: ToolCall) -> String {
    let one = bench.run(call.clone()).await;
    format!("{one}, {}", bench.run(call).await)
}

/// A call without a key, twice.
async fn repeats(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    let call = bench.call(Effect::Mutating);
    twice(bench, call).await
}

/// A call of one step, twice.
async fn one_step(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    let mut call = bench.call(Effect::Mutating).turn("1");
    call.parts_mut().step = Some("1".into());
    twice(bench, call).await
}

async fn conflict(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    let one = bench.run(keyed(&bench, Effect::Mutating)).await;
    let other = bench.call_with(Effect::Mutating, r#"{"n": 2}"#).idempotency_key("k");
    format!("{one}, {}", bench.run(other).await)
}

async fn two_keys_and_the_first_again(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    let mut seen = Vec::new();
    for key in ["a", "b", "a"] {
        seen.push(bench.run(bench.call(Effect::ReadOnly).idempotency_key(key)).await);
    }
    seen.join(", ")
}

/// Three callers of one run, and when each has its answer.
async fn waiting(live: Live) -> String {
    let bench = bench(live, [Step::after(ms(500), answers("ok"))]);
    let mut calls = Vec::new();
    for _ in 0..3 {
        let (tool, call) = (bench.tool.clone(), keyed(&bench, Effect::ReadOnly));
        calls.push(tokio::spawn(async move {
            let began = tokio::time::Instant::now();
            let end = word(tool.oneshot(call).await);
            format!("{end} {}", began.elapsed().as_millis())
        }));
        tokio::task::yield_now().await;
    }
    let mut seen = Vec::new();
    for call in calls {
        seen.push(call.await.unwrap());
    }
    seen.join(", ")
}

async fn long_answers(live: Live) -> String {
    let bench = bench(live, [answers(&"x".repeat(5000))]);
    let call = keyed(&bench, Effect::Mutating);
    twice(bench, call).await
}

pub(crate) async fn later(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    let one = bench.run(keyed(&bench, Effect::ReadOnly)).await;
    sleep(ms(100)).await;
    format!("{one}, {}", bench.run(keyed(&bench, Effect::ReadOnly)).await)
}

/// Two calls with one key, and some time between them.
async fn runs(bench: &Bench, effect: Effect) -> String {
    for turn in ["1", "2"] {
        bench.run(keyed(bench, effect).turn(turn)).await;
        sleep(ms(100)).await;
    }
    format!("{} runs", bench.handle.calls())
}

pub(crate) async fn later_failures(live: Live) -> String {
    let bench = bench(live, [fails("no_such_flight", Verdict::Permanent, Ran::Yes)]);
    runs(&bench, Effect::ReadOnly).await
}

pub(crate) async fn stale(live: Live) -> String {
    let bench = bench(live, [Step::Hang]);
    let call = tokio::spawn(bench.tool.clone().oneshot(keyed(&bench, Effect::Mutating)));
    sleep(ms(100)).await;
    let stale = bench.live.stack().records().stale().len();
    call.abort();
    format!("{stale} stale")
}

pub(crate) async fn unknown(live: Live) -> String {
    let bench = bench(live, [Step::Hang]);
    runs(&bench, Effect::Mutating).await
}

/// A call whose caller vanishes before the answer, and its repeat some time after the answer.
async fn cut_off(live: Live) -> String {
    let bench = bench(live, [Step::after(ms(20), answers("ok"))]);
    let call = tokio::spawn(bench.tool.clone().oneshot(bench.call(Effect::Mutating)));
    sleep(ms(10)).await;
    call.abort();
    sleep(ms(200)).await;
    bench.run(bench.call(Effect::Mutating)).await;
    format!("{} runs", bench.handle.calls())
}

/// Two calls with one key and these params.
pub(crate) async fn params(live: Live, one: &str, two: &str) -> String {
    let bench = bench(live, [answers("ok")]);
    let mut seen = Vec::new();
    for params in [one, two] {
        let call = bench.call_with(Effect::Mutating, params).idempotency_key("k");
        seen.push(bench.run(call).await);
    }
    seen.join(", ")
}

/// One key in two sessions.
pub(crate) async fn sessions(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    let one = bench.run(keyed(&bench, Effect::ReadOnly)).await;
    let other = keyed(&bench, Effect::ReadOnly).session("other");
    format!("{one}, {}", bench.run(other).await)
}
