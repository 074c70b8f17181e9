//! What is said of loops.
use super::bench::{Bench, Group, bench, down, ms, rows};
use std::{fs, path::PathBuf};
use tokio::time::sleep;
use tool_reliability::config::Live;
use tr_core::{Effect, Ran, ToolCall, Verdict};
use tr_testkit::{
    calls::{answers, fails},
    tool::Step,
};

pub(crate) const ROWS: &[Group] = rows! {
    same(malformed()), r#"{"retry": {"attempts": 1}}"# {
        "loops.enabled" = "false" => "loop_detected at 3" => "none in 30";
        "loops.mode" = "\"off\"" => "loop_detected at 3" => "none in 30";
        "loops.mode" = "\"note\"" => "loop_detected at 3" => "none in 30";
        "loops.max_identical" = "4" => "loop_detected at 3" => "loop_detected at 5";
    }
    different, r#"{"retry": {"attempts": 1}}"# {
        "loops.max_failures_per_turn" = "2" => "tool_error_limit at 6" => "tool_error_limit at 3";
    }
    same(answers("ok")), "{}" {
        "loops.calls_per_turn" = "4" => "none in 30" => "tool_call_limit at 5";
        "loops.calls_per_session" = "4" => "none in 30" => "tool_call_limit at 5";
    }
    nameless_and_different, r#"{"retry": {"attempts": 1}}"# {
        "loops.mode" = "\"strict\"" => "none in 30" => "tool_error_limit at 6";
    }
    nameless, r#"{"retry": {"attempts": 1}}"# {
        "loops.memory_ms" = "50" => "loop_detected at 3" => "none in 30";
    }
    two_turns, r#"{"retry": {"attempts": 1}}"# {
        "loops.max_turns" = "1" => "loop_detected" => "malformed";
    }
    logged, r#"{"retry": {"attempts": 1}}"# {
        "loops.log_path" = "\"/tmp/tool-reliability-settings-test.log\"" => "0 lines" => "1 lines";
    }
};

pub(crate) const SIGNALS: &[Group] = rows! {
    same(answers("ok")), "{}" {
        "loops.signals" = "true" => "none in 30" => "loop_detected at 21";
        "loops.signals.enabled" = "true" => "none in 30" => "loop_detected at 21";
        "loops.signals.repeats" = "3" => "none in 30" => "loop_detected at 7";
    }
    same(answers("ok")), r#"{"loops": {"signals": {"enabled": true}}}"# {
        "loops.signals.refuse" = "false" => "loop_detected at 21" => "none in 30";
        "loops.signals.pace_ms" = "1" => "loop_detected at 21" => "none in 30";
    }
    same(down()), r#"{"retry": {"attempts": 1}, "breaker": {"mode": "disabled"}, "loops": {"signals": {"enabled": true}}}"# {
        "loops.signals.failing_repeats" = "2" => "loop_detected at 11" => "loop_detected at 5";
        "loops.signals.count_transient" = "true" => "loop_detected at 11" => "loop_detected at 3";
    }
    cycle, r#"{"loops": {"signals": {"enabled": true}}}"# {
        "loops.signals.rounds" = "2" => "loop_detected at 13" => "loop_detected at 9";
    }
    same_errors, r#"{"retry": {"attempts": 1}, "breaker": {"mode": "disabled"}, "loops": {"signals": {"enabled": true}, "max_failures_per_turn": 1000}}"# {
        "loops.signals.same_error" = "2" => "loop_detected at 7" => "loop_detected at 5";
    }
    polled, r#"{"loops": {"signals": {"enabled": true, "pace_ms": 1}}}"# {
        "loops.signals.quiet_ms" = "500" => "none in 30" => "loop_detected at 21";
    }
    changing, r#"{"loops": {"signals": {"enabled": true}}}"# {
        "loops.signals.volatile" = "[\"load\"]" => "none in 30" => "loop_detected at 21";
    }
};

/// Calls, so many milliseconds apart, until one is refused as a loop.
async fn until(bench: &Bench, apart: u64, call: impl Fn(usize) -> ToolCall) -> String {
    for n in 1..=30 {
        let end = bench.run(call(n)).await;
        if ["loop_detected", "tool_error_limit", "tool_call_limit"].contains(&&*end) {
            return format!("{end} at {n}");
        }
        sleep(ms(apart)).await;
    }
    "none in 30".to_owned()
}

/// Calls of one turn until one is refused as a loop.
async fn until_refused(bench: &Bench, effect: Effect, params: impl Fn(usize) -> String) -> String {
    until(bench, 5, |n| bench.call_with(effect, &params(n)).turn("1")).await
}

pub(crate) fn malformed() -> Step<tr_core::ToolOutcome> {
    fails("malformed", Verdict::Permanent, Ran::No)
}

/// The same call with the same end.
pub(crate) async fn same(live: Live, end: Step<tr_core::ToolOutcome>) -> String {
    until_refused(&bench(live, [end]), Effect::ReadOnly, |_| "{}".into()).await
}

/// Failing calls that differ in one param.
pub(crate) async fn but_for_one(live: Live) -> String {
    let params = |n| format!(r#"{{"job": 7, "n": {n}}}"#);
    until_refused(&bench(live, [malformed()]), Effect::ReadOnly, params).await
}

pub(crate) async fn different(live: Live) -> String {
    let steps = (0..30).map(|n| Step::err(format!("failure {n}")));
    until_refused(&bench(live, steps), Effect::Mutating, |n| format!(r#"{{"n": {n}}}"#)).await
}

/// Calls that do not say their turn, one each 100 ms.
async fn nameless(live: Live) -> String {
    // Without a turn only what depends on the arguments alone is refused.
    let bench = bench(live, [Step::err("Missing required parameter: path")]);
    until(&bench, 100, |_| bench.call(Effect::ReadOnly)).await
}

/// Calls that do not say their turn, and fail in other words each time.
async fn nameless_and_different(live: Live) -> String {
    let bench = bench(live, (0..30).map(|n| Step::err(format!("failure {n}"))));
    until(&bench, 5, |n| bench.call_with(Effect::Mutating, &format!(r#"{{"n": {n}}}"#))).await
}

/// A turn with two failures goes on after many other turns.
async fn two_turns(live: Live) -> String {
    let bench = bench(live, [malformed()]);
    for turn in [1, 1].into_iter().chain(2..1000) {
        bench.run(bench.call(Effect::ReadOnly).turn(turn.to_string())).await;
    }
    bench.run(bench.call(Effect::ReadOnly).turn("1")).await
}

#[expect(clippy::disallowed_methods, reason = "the log is written by a thread in real time")]
async fn logged(live: Live) -> String {
    let path = PathBuf::from("/tmp/tool-reliability-settings-test.log");
    let _ = fs::remove_file(&path);
    let bench = bench(live, [Step::err("Missing required parameter: path")]);
    bench.run(bench.call(Effect::ReadOnly).turn("1")).await;
    drop(bench);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(2);
    let lines = || fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    while lines() == 0 && path.exists() && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    let seen = format!("{} lines", lines());
    let _ = fs::remove_file(&path);
    seen
}

async fn cycle(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    until_refused(&bench, Effect::ReadOnly, |n| format!(r#"{{"n": {}}}"#, n % 2)).await
}

async fn same_errors(live: Live) -> String {
    let bench = bench(live, [Step::err("no such flight")]);
    until_refused(&bench, Effect::ReadOnly, |n| format!(r#"{{"n": {n}}}"#)).await
}

async fn polled(live: Live) -> String {
    let bench = bench(live, [answers("running")]);
    until(&bench, 100, |_| bench.call(Effect::ReadOnly).turn("1")).await
}

/// Answers that differ in one member.
async fn changing(live: Live) -> String {
    let steps = (0..30).map(|n| {
        Step::Ok(tr_core::ToolOutcome::success(serde_json::json!({"state": "up", "load": n})))
    });
    until_refused(&bench(live, steps), Effect::ReadOnly, |_| "{}".into()).await
}
