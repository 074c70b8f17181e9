//! What a real stack counts with a real meter, and what it counts not while it is switched off by
//! the real environment.
use crate::common::{Notes, around};
use crate::metered::Metered;
use std::{env, process::Command, time::Duration};
use tokio::time::advance;
use tool_reliability::{ToolStack, breaker::error::CircuitOpen, telemetry::Signals};
use tower::ServiceExt;
use tr_core::{
    BoxError, BreakerState, DedupeScope, Effect, KeyRef, Params, Ran, ToolCall, ToolOutcome,
    Verdict, find,
};
use tr_testkit::{
    calls::{answers, fails},
    tool::Step,
};

fn stack(metered: &Metered) -> ToolStack {
    let signals = Signals::builder().meter(metered.meter()).tools(["pay"]).build().unwrap();
    ToolStack::builder()
        .telemetry(signals)
        .loop_guard(|guard| guard.enabled(false))
        .breaker(|breaker| breaker.consecutive_failures(2).cooldown(Duration::from_secs(5)))
        .build()
        .unwrap()
}

/// Not retried, so that each call is one attempt.
fn pay() -> ToolCall {
    ToolCall::new("pay", Params::empty_object()).effect(Effect::Mutating).session("s")
}

fn down() -> Step<ToolOutcome> {
    fails("reset", Verdict::TRANSIENT, Ran::Unknown)
}

#[tokio::test(start_paused = true)]
async fn tr_13_each_transition_of_a_real_stack_is_counted() {
    use BreakerState::{Closed, ForcedOpen, HalfOpen, Open};
    let metered = Metered::new();
    let stack = stack(&metered);
    let script = [down(), down(), down(), answers("ok")];
    let (tool, _) = around(&stack, script);
    let call = async || tool.clone().oneshot(pay()).await;
    let breaker = || stack.breakers().get(KeyRef::new("pay")).unwrap();
    let cooled = async || advance(Duration::from_secs(6)).await;

    call().await.unwrap_err();
    call().await.unwrap_err();
    let refused = call().await.unwrap_err();
    assert!(find::<CircuitOpen>(&*refused).is_some());
    cooled().await;
    // A probe that fails, and two that succeed.
    call().await.unwrap_err();
    cooled().await;
    call().await.unwrap();
    call().await.unwrap();
    breaker().force_open();
    call().await.unwrap_err();
    breaker().reset();
    call().await.unwrap();

    let metrics = metered.read();
    for (from, to, times) in [
        (Closed, Open, 1.0),
        (Open, HalfOpen, 2.0),
        (HalfOpen, Open, 1.0),
        (HalfOpen, Closed, 1.0),
        (Closed, ForcedOpen, 1.0),
        (ForcedOpen, Closed, 1.0),
    ] {
        let series = "openclaw_tool_circuit_breaker_transitions";
        let (from, to) = (from.as_str(), to.as_str());
        let edge = format!("{series}{{from_state={from},to_state={to},tool=pay}}");
        assert_eq!(metrics.get(&edge), Some(&times), "{edge} in {metrics:?}");
    }
    let transitions = |name: &&String| name.starts_with("openclaw_tool_circuit_breaker_trans");
    assert_eq!(metrics.keys().filter(transitions).count(), 6);
    for (state, shown) in [(Closed, 1.0), (Open, 0.0), (HalfOpen, 0.0), (ForcedOpen, 0.0)] {
        let state = state.as_str();
        let gauge = format!("openclaw_tool_circuit_breaker_state{{state={state},tool=pay}}");
        assert_eq!(metrics.get(&gauge), Some(&shown), "{gauge}");
    }
    let calls = |status: &str| {
        let names = metrics.iter().filter(|(name, _)| name.starts_with("openclaw_tool_calls{"));
        let of = names.filter(|(name, _)| name.contains(status));
        of.map(|(_, calls)| *calls).sum::<f64>()
    };
    assert_eq!((calls(""), calls("status=success"), calls("status=circuit_open")), (8.0, 3.0, 2.0));
}

#[tokio::test(start_paused = true)]
async fn tr_13_retries_replays_and_records_of_a_real_stack_are_shown() {
    let metered = Metered::new();
    let stack = stack(&metered);
    let (tool, _) = around(&stack, [down(), answers("ok")]);
    let read = || ToolCall::new("pay", Params::empty_object()).effect(Effect::ReadOnly);
    let mut global = read().idempotency_key("k");
    global.parts_mut().idempotency.scope = DedupeScope::Global;
    tool.clone().oneshot(global.clone()).await.unwrap();
    assert!(tool.clone().oneshot(global).await.unwrap().from_cache());
    tool.clone().oneshot(pay().idempotency_key("a")).await.unwrap();
    let (tool, _) = around(&stack, [fails("bad", Verdict::Permanent, Ran::No)]);
    tool.oneshot(pay().idempotency_key("b")).await.unwrap_err();

    let metrics = metered.read();
    for (series, value) in [
        ("openclaw_tool_retry_attempts{reason=_other,tool=pay}", 1.0),
        ("openclaw_tool_idempotency_hits{state=done,tool=pay}", 1.0),
        ("openclaw_tool_dedupe_cache_size{scope=session,tool=pay}", 2.0),
        ("openclaw_tool_dedupe_cache_size{scope=global,tool=pay}", 1.0),
        ("openclaw_tool_dedupe_ttl_seconds{state=done,tool=pay}", 24.0 * 3600.0),
        ("openclaw_tool_dedupe_ttl_seconds{state=failed,tool=pay}", 300.0),
    ] {
        assert_eq!(metrics.get(series), Some(&value), "{series} in {metrics:?}");
    }
}

/// Set for the child of [`tr_14_the_environment_s_kill_switch_is_a_true_bypass`].
const CHILD: &str = "TR_14_CHILD";

/// The variable is this process's, so the case runs in a process of its own.
#[test]
fn tr_14_the_environment_s_kill_switch_is_a_true_bypass() {
    if env::var_os(CHILD).is_none() {
        for (enabled, child) in [("false", "off"), ("true", "on")] {
            let name = "metrics::tr_14_the_environment_s_kill_switch_is_a_true_bypass";
            let output = Command::new(env::current_exe().unwrap())
                .args(["--exact", name])
                .env(CHILD, child)
                .env("TOOL_RELIABILITY_ENABLED", enabled)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
        }
        return;
    }
    let is_on = env::var(CHILD).unwrap() == "on";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let metered = Metered::new();
        let fired = Notes::default();
        let signals = Signals::builder().meter(metered.meter()).build().unwrap();
        let stack = ToolStack::builder().telemetry(signals).hook(fired.clone()).build().unwrap();
        let (tool, handle) = around(&stack, [fails("reset", Verdict::TRANSIENT, Ran::No)]);
        let search = pay().idempotency_key("k");
        let mut ends: Vec<BoxError> = Vec::new();
        for _ in 0..10 {
            ends.push(tool.clone().oneshot(search.clone()).await.unwrap_err());
        }
        let params = handle.requests();
        let shared = params.iter().all(|it| it.parts().params.ptr_eq(&search.parts().params));
        assert!(shared, "the same params, by pointer");
        let fired = fired.take().into_iter().filter(|it| *it == "before").count();
        if is_on {
            assert!(!stack.breakers().all().is_empty() && !metered.read().is_empty());
            return;
        }
        assert_eq!((handle.calls(), fired), (10, 10));
        assert!(ends.iter().all(|end| end.to_string() == "reset: the tool did not run"));
        assert!(stack.records().records().is_empty() && stack.breakers().all().is_empty());
        assert!(metered.read().is_empty(), "no metric of ours");
    });
}
