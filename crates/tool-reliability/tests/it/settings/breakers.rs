//! What is said of breakers.
use super::bench::{Bench, Group, bench, down, ms, rows};
use tokio::time::{advance, sleep};
use tool_reliability::config::Live;
use tower::ServiceExt;
use tr_core::{
    Effect::{self, Idempotent, Mutating, ReadOnly},
    Params, Ran, ToolCall, Verdict, code,
};
use tr_testkit::{
    calls::{answers, fails},
    tool::Step,
};

pub(crate) const ROWS: &[Group] = rows! {
    opens(Idempotent), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "breaker.consecutive" = "3" => "5 calls, 30000 ms" => "3 calls, 30000 ms";
        "breaker.cooldown_ms" = "700" => "5 calls, 30000 ms" => "5 calls, 700 ms";
        "breaker.cooldown_jitter" = "0.5" => "5 calls, 30000 ms" => "jittered";
        "breaker.mode" = "\"disabled\"" => "5 calls, 30000 ms" => "never";
        "breaker.idempotent.consecutive" = "3" => "5 calls, 30000 ms" => "3 calls, 30000 ms";
        "breaker.idempotent.cooldown_ms" = "700" => "5 calls, 30000 ms" => "5 calls, 700 ms";
    }
    opens(ReadOnly), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "breaker.read_only.consecutive" = "3" => "8 calls, 20000 ms" => "3 calls, 20000 ms";
        "breaker.read_only.cooldown_ms" = "700" => "8 calls, 20000 ms" => "8 calls, 700 ms";
    }
    opens(Mutating), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "breaker.mutating.consecutive" = "3" => "5 calls, 15000 ms" => "3 calls, 15000 ms";
        "breaker.mutating.cooldown_ms" = "700" => "5 calls, 15000 ms" => "5 calls, 700 ms";
    }
    opens(Idempotent), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}, "breaker": {"consecutive": "none"}}"# {
        "breaker.min_calls" = "4" => "10 calls, 30000 ms" => "4 calls, 30000 ms";
    }
    one_in_four(Idempotent), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "breaker.failure_rate" = "0.2" => "never" => "10 calls, 30000 ms";
        "breaker.idempotent.failure_rate" = "0.2" => "never" => "10 calls, 30000 ms";
    }
    one_in_four(ReadOnly), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "breaker.read_only.failure_rate" = "0.2" => "never" => "10 calls, 20000 ms";
    }
    one_in_four(Mutating), r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "breaker.mutating.failure_rate" = "0.2" => "never" => "10 calls, 15000 ms";
    }
    after_successes, r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}, "breaker": {"min_calls": 4, "consecutive": "none"}}"# {
        "breaker.window" = "4" => "12 calls, 30000 ms" => "8 calls, 30000 ms";
    }
    far_apart, r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}, "breaker": {"consecutive": 2}}"# {
        "breaker.rolling_ms" = "500" => "OPEN" => "CLOSED";
    }
    slow, r#"{"breaker": {"slow_calls": {"longer_than_ms": 5000, "rate": 0.5}}}"# {
        "breaker.slow_calls.longer_than_ms" = "50" => "never" => "10 calls, 30000 ms";
    }
    sometimes_slow, r#"{"breaker": {"slow_calls": {"longer_than_ms": 50, "rate": 1}}}"# {
        "breaker.slow_calls.rate" = "0.4" => "never" => "10 calls, 30000 ms";
    }
    probes, r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}, "breaker": {"consecutive": 1, "cooldown_ms": 1000}}"# {
        "breaker.max_probes" = "2" => "1 of 3" => "2 of 3";
        "breaker.mode" = "\"shadow\"" => "1 of 3" => "3 of 3";
        "breaker.probe_lease_ms" = "50" => "1 of 3" => "1 of 3, OPEN again";
    }
    one_success, r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}, "breaker": {"consecutive": 1, "cooldown_ms": 1000}}"# {
        "breaker.successes_to_close" = "1" => "HALF_OPEN, 21 of 21" => "CLOSED, 21 of 21";
    }
    one_success, r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}, "breaker": {"consecutive": 1, "cooldown_ms": 1000, "successes_to_close": 1}}"# {
        "breaker.ramp_ms" = "100000" => "CLOSED, 21 of 21" => "CLOSED, some of 21";
    }
    rate_limits, r#"{"retry": {"attempts": 1}, "loops": {"enabled": false}}"# {
        "breaker.count_rate_limits" = "false" => "5 calls, 30000 ms" => "never";
    }
    first_call, "{}" {
        "breaker.forced_open" = "true" => "ok" => "circuit_open";
    }
    two_tools, "{}" {
        "breaker.capacity" = "1" => "2 breakers" => "1 breakers";
    }
};

pub(crate) async fn opens(live: Live, effect: Effect) -> String {
    let bench = bench(live, [down()]);
    let seen = bench.opens(effect).await;
    let left = seen.split(", ").nth(1).and_then(|left| left.strip_suffix(" ms")?.parse().ok());
    match left {
        Some(30_001..=45_000_u64) => "jittered".to_owned(),
        _ => seen,
    }
}

/// Every fourth call fails.
pub(crate) async fn one_in_four(live: Live, effect: Effect) -> String {
    let steps = (0..60).map(|n| if n % 4 == 3 { down() } else { answers("ok") });
    bench(live, steps).opens(effect).await
}

async fn after_successes(live: Live) -> String {
    let steps = (0..60).map(|n| if n < 6 { answers("ok") } else { down() });
    bench(live, steps).opens(Idempotent).await
}

async fn far_apart(live: Live) -> String {
    let bench = bench(live, [down()]);
    for n in 0..2 {
        bench.run(bench.call(Idempotent).turn(n.to_string())).await;
        advance(ms(1000)).await;
    }
    bench.state().as_str().to_owned()
}

async fn slow(live: Live) -> String {
    bench(live, [Step::after(ms(100), answers("ok"))]).opens(Idempotent).await
}

async fn sometimes_slow(live: Live) -> String {
    let steps = (0..60).map(|n| match n % 2 {
        0 => Step::after(ms(100), answers("ok")),
        _ => answers("ok"),
    });
    bench(live, steps).opens(Idempotent).await
}

/// Opens it by one failure, and lets its cooldown pass.
async fn half_open(
    live: Live,
    then: impl IntoIterator<Item = Step<tr_core::ToolOutcome>>,
) -> Bench {
    let bench = bench(live, [down()].into_iter().chain(then));
    bench.run(bench.call(Idempotent).turn("0")).await;
    sleep(ms(1001)).await;
    bench
}

/// How many of three calls get through to a tool that hangs, and whether the breaker gives up on them.
async fn probes(live: Live) -> String {
    let bench = half_open(live, [Step::Hang]).await;
    let calls: Vec<_> = (1..=3)
        .map(|n| {
            let call = bench.call_with(Idempotent, &format!(r#"{{"n": {n}}}"#));
            tokio::spawn(bench.tool.clone().oneshot(call.turn(n.to_string())))
        })
        .collect();
    sleep(ms(100)).await;
    let seen = format!("{} of 3", bench.handle.calls() - 1);
    let state = bench.state().as_str();
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    if state == "OPEN" { format!("{seen}, OPEN again") } else { seen }
}

/// The state after one success, and how many of the calls after it get through.
async fn one_success(live: Live) -> String {
    let bench = half_open(live, [answers("ok")]).await;
    bench.run(bench.call(Idempotent).turn("1")).await;
    let state = bench.state().as_str();
    for n in 2..22 {
        let call = bench.call_with(Idempotent, &format!(r#"{{"n": {n}}}"#));
        bench.run(call.turn(n.to_string())).await;
    }
    match bench.handle.calls() - 1 {
        21 => format!("{state}, 21 of 21"),
        1..21 => format!("{state}, some of 21"),
        _ => "none".to_owned(),
    }
}

async fn rate_limits(live: Live) -> String {
    let limited = fails(code::RATE_LIMITED, Verdict::TRANSIENT, Ran::No);
    bench(live, [limited]).opens(Idempotent).await
}

pub(crate) async fn first_call(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    bench.run(bench.call(Mutating)).await
}

async fn two_tools(live: Live) -> String {
    let bench = bench(live, [down()]);
    for tool in ["a", "b"] {
        let call = ToolCall::new(tool, Params::empty_object()).effect(Mutating);
        bench.run(call).await;
    }
    format!("{} breakers", bench.live.stack().breakers().all().len())
}

/// Which breakers there are after a call with these params.
pub(crate) async fn names(live: Live, params: &str) -> String {
    let bench = bench(live, [down()]);
    bench.run(bench.call_with(Mutating, params)).await;
    let all = bench.live.stack().breakers().all();
    all.iter().map(|breaker| breaker.name().to_owned()).collect::<Vec<_>>().join(" ")
}
