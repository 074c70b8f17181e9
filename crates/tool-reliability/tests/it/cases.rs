//! Acceptance cases that need more than one layer.
use crate::common::{around, down};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, advance};
use tool_reliability::{
    Hook, KillSwitch, ToolStack,
    retry::{RetryConfig, RetryExhausted, RetryStop},
};
use tower::ServiceExt;
use tr_core::{
    BoxError, BreakerState, Effect, Json, Params, Ran, ToolCall, ToolOutcome, Verdict, causes,
    code, failure_info, find,
};
use tr_testkit::{
    calls::{answers, fails, reports},
    tool::Step,
};

fn call(tool: &str) -> ToolCall {
    ToolCall::new(tool, Params::empty_object()).effect(Effect::Idempotent).session("s").turn("t")
}

fn attempts(attempts: u32, mut config: RetryConfig) -> RetryConfig {
    config.attempts = attempts;
    config
}

fn state(stack: &ToolStack, tool: &str) -> BreakerState {
    stack.breakers().get(tr_core::KeyRef::new(tool)).unwrap().state()
}

#[tokio::test(start_paused = true)]
async fn tr_07_retry_budget_exhausted_and_the_breaker_sees_it() {
    let stack = ToolStack::default();
    let (tool, handle) = around(&stack, [down()]);
    let started = Instant::now();
    let error = tool.oneshot(call("search")).await.unwrap_err();
    assert_eq!(failure_info(&*error).unwrap().code(), code::RETRY_EXHAUSTED);
    assert_eq!(handle.calls(), 4);
    // Timers have whole milliseconds.
    assert!(started.elapsed() <= Duration::from_millis(200 + 400 + 800 + 3));
    let breaker = stack.breakers().get(tr_core::KeyRef::new("search")).unwrap();
    assert_eq!(breaker.counts().consecutive_failures, 4);
}

#[tokio::test(start_paused = true)]
async fn tr_08_consecutive_failures_open_and_the_stack_fails_fast() {
    let stack = ToolStack::builder().loop_guard(|guard| guard.enabled(false)).build().unwrap();
    let (tool, handle) = around(&stack, [fails("http_400x", Verdict::TRANSIENT, Ran::Unknown)]);
    for _ in 0..5 {
        let error = tool.clone().oneshot(call("pay").effect(Effect::Mutating)).await.unwrap_err();
        assert_ne!(failure_info(&*error).unwrap().code(), code::CIRCUIT_OPEN);
    }
    assert_eq!((handle.calls(), state(&stack, "pay")), (5, BreakerState::Open));
    let started = Instant::now();
    let error = tool.oneshot(call("pay").effect(Effect::Mutating)).await.unwrap_err();
    let found = failure_info(&*error).unwrap();
    assert_eq!((found.code(), found.ran()), (code::CIRCUIT_OPEN, Ran::No));
    assert_eq!((handle.calls(), started.elapsed()), (5, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn tr_11_an_open_breaker_stops_retries() {
    let stack =
        ToolStack::builder().breaker(|breaker| breaker.consecutive_failures(2)).build().unwrap();
    let (tool, handle) = around(&stack, [fails("timeout", Verdict::TRANSIENT, Ran::Unknown)]);
    let started = Instant::now();
    let error = tool.clone().oneshot(call("search")).await.unwrap_err();
    assert_eq!(handle.calls(), 2);
    let found = failure_info(&*error).unwrap();
    // The refusal did not run, but earlier attempts may have.
    assert_eq!((found.code(), found.ran()), (code::CIRCUIT_OPEN, Ran::Unknown));
    assert!(causes(&*error).any(|cause| cause.to_string().starts_with("timeout")), "{error:?}");
    let exhausted = find::<RetryExhausted>(&*error).unwrap();
    assert_eq!((exhausted.why(), exhausted.attempts()), (RetryStop::CircuitOpen, handle.calls()));
    let text = error.to_string();
    assert!(
        text.starts_with(
            "gave up after 2 attempts (the circuit breaker refused the next attempt; earlier: timeout, timeout): "
        ),
        "{text}"
    );
    assert!(started.elapsed() <= Duration::from_millis(200 + 400 + 2));

    let started = Instant::now();
    let error = tool.oneshot(call("search")).await.unwrap_err();
    assert_eq!(failure_info(&*error).unwrap().ran(), Ran::No);
    assert_eq!((handle.calls(), started.elapsed()), (2, Duration::ZERO));
}

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Hook for Heard {
    fn prepare(&self, call: &mut ToolCall) {
        if call.parts().tool.name() == "keyed" && call.parts().idempotency.key.is_none() {
            call.parts_mut().idempotency.key = Some("from the hook".into());
        }
    }

    fn before(&self, call: &ToolCall) {
        self.0.lock().unwrap().push(format!("before {}", call.attempt()));
    }

    fn after(&self, _: &ToolCall, end: Result<&ToolOutcome, &BoxError>) {
        let end = match end {
            Ok(outcome) if outcome.from_cache() => "replay".to_owned(),
            Ok(outcome) => outcome.error().map_or("success", |_| "failure").to_owned(),
            Err(error) => failure_info(&**error).map_or("?", |facts| facts.code()).to_owned(),
        };
        self.0.lock().unwrap().push(format!("after {end}"));
    }
}

#[tokio::test(start_paused = true)]
async fn tr_12_hooks_fire_once_per_attempt_and_once_per_short_circuit() {
    let heard = Heard::default();
    let stack = ToolStack::builder()
        .breaker(|breaker| breaker.consecutive_failures(3))
        .hook(heard.clone())
        .build()
        .unwrap();

    let (tool, _) = around(&stack, [down(), answers("ok")]);
    tool.clone().oneshot(call("keyed")).await.unwrap();
    assert_eq!(heard.take(), ["before 0", "after http_503", "before 1", "after success"]);
    // The hook's key makes the second call a replay, which has no attempt.
    tool.oneshot(call("keyed")).await.unwrap();
    assert_eq!(heard.take(), ["before 0", "after replay"]);

    let (tool, handle) = around(&stack, [reports("bad", "Missing required parameter: path")]);
    for _ in 0..2 {
        tool.clone().oneshot(call("read")).await.unwrap();
        assert_eq!(heard.take(), ["before 0", "after failure"]);
    }
    tool.clone().oneshot(call("read")).await.unwrap_err();
    assert_eq!(heard.take(), ["before 0", "after loop_detected"]);
    assert_eq!(handle.calls(), 2);

    let (tool, _) = around(&stack, [down()]);
    let pay = || call("pay").effect(Effect::Mutating).turn("another");
    tool.clone().oneshot(pay()).await.unwrap_err();
    let attempts =
        ["before 0", "after http_503", "before 1", "after http_503", "before 2", "after http_503"];
    // The fourth attempt met the open breaker, inside the attempt's hooks.
    assert_eq!(heard.take(), [&attempts[..], &["before 3", "after circuit_open"]].concat());
    tool.oneshot(pay()).await.unwrap_err();
    assert_eq!(heard.take(), ["before 0", "after circuit_open"]);
}

/// A clone is a call of its own: what it is told from a record had no attempt, whatever the first
/// one had, and whether that still runs or is over.
#[tokio::test(start_paused = true)]
async fn tr_12_a_clone_that_is_replayed_has_its_hooks_too() {
    let heard = Heard::default();
    let stack = ToolStack::builder().hook(heard.clone()).build().unwrap();
    let slow = Step::after(Duration::from_secs(1), answers("ok"));
    let (tool, handle) = around(&stack, [slow]);
    let first = call("search").idempotency_key("k");
    let running = tokio::spawn(tool.clone().oneshot(first.clone()));
    tokio::task::yield_now().await;
    let joined = tokio::spawn(tool.clone().oneshot(first.clone()));
    running.await.unwrap().unwrap();
    joined.await.unwrap().unwrap();
    let mut both = heard.take();
    both.sort();
    assert_eq!(both, ["after replay", "after success", "before 0", "before 0"]);
    tool.oneshot(first).await.unwrap();
    assert_eq!(heard.take(), ["before 0", "after replay"]);
    assert_eq!(handle.calls(), 1);
}

/// What a caller would like stands in the call that the tool gets.
#[tokio::test(start_paused = true)]
async fn ut_06_hints_reach_the_tool() {
    let catalog = r#"{"tools": {"search": {"effect": "read_only", "capabilities": ["streaming", "caching"]}}}"#;
    let catalog = tr_config::ToolCatalog::from_json(catalog).unwrap();
    let (tool, handle) = around(&ToolStack::default(), [answers("ok")]);
    let mut search = ToolCall::new("search", Params::empty_object());
    let hints = &mut search.parts_mut().hints;
    (hints.prefer_streaming, hints.cache_key) = (true, Some("k".into()));
    tool.oneshot(catalog.manifested(search)).await.unwrap();
    let call = handle.requests().remove(0);
    let (tool, hints) = (call.manifest().unwrap(), &call.parts().hints);
    assert!(tool.streams_for(hints));
    assert_eq!(tool.cache_key_of(hints), Some("k"));
}

#[tokio::test(start_paused = true)]
async fn tr_14_the_kill_switch_is_a_true_bypass() {
    let heard = Heard::default();
    let switch = KillSwitch::new(false);
    let stack =
        ToolStack::builder().hook(heard.clone()).kill_switch(switch.clone()).build().unwrap();
    let (tool, handle) = around(&stack, [down()]);
    let search = call("search").idempotency_key("k");
    for _ in 0..10 {
        let error = tool.clone().oneshot(search.clone()).await.unwrap_err();
        // The tool's own error, as it was.
        assert_eq!(error.to_string(), "http_503: the tool did not run");
    }
    assert_eq!(handle.calls(), 10);
    let seen: Vec<Json> =
        handle.requests().into_iter().map(|call| call.parts().params.clone()).collect();
    assert!(seen.iter().all(|params| params.ptr_eq(&search.parts().params)));
    assert!(stack.records().records().is_empty() && stack.breakers().all().is_empty());
    assert_eq!(heard.take().len(), 20);

    switch.set(true);
    tool.oneshot(search).await.unwrap_err();
    assert_eq!(handle.calls(), 14);
}

#[tokio::test(start_paused = true)]
async fn eh_7_1_rapid_failures() {
    let stack = ToolStack::builder()
        .retry(|retry| retry.config(RetryConfig::fixed_cadence()))
        .breaker(|_| tool_reliability::breaker::Builder::close_on_first_success())
        .build()
        .unwrap();
    let (tool, handle) = around(&stack, [down()]);
    let flight_search = || call("flight_search").effect(Effect::ReadOnly);
    tool.clone().oneshot(flight_search().turn("0")).await.unwrap_err();
    assert_eq!((handle.calls(), state(&stack, "flight_search")), (5, BreakerState::Open));
    for turn in 1..=5 {
        let error = tool.clone().oneshot(flight_search().turn(turn.to_string())).await.unwrap_err();
        assert_eq!(failure_info(&*error).unwrap().code(), code::CIRCUIT_OPEN);
    }
    assert_eq!((handle.calls(), state(&stack, "flight_search")), (5, BreakerState::Open));
}

#[tokio::test(start_paused = true)]
async fn eh_7_2_mixed_transient_and_permanent() {
    let stack = ToolStack::builder()
        .retry(|retry| retry.config(attempts(2, RetryConfig::fixed_cadence())))
        .breaker(|_| tool_reliability::breaker::Builder::close_on_first_success())
        .build()
        .unwrap();
    let script = [
        fails("timeout", Verdict::TRANSIENT, Ran::Unknown),
        fails("invalid_input", Verdict::Permanent, Ran::No),
        fails("rate_limited", Verdict::TRANSIENT, Ran::No),
        answers("ok"),
    ];
    let (tool, handle) = around(&stack, script);
    let flight_search = || call("flight_search").effect(Effect::ReadOnly);
    // Error 1 is retried and meets error 2, which is not; error 3 is retried.
    let error = tool.clone().oneshot(flight_search()).await.unwrap_err();
    assert_eq!((handle.calls(), failure_info(&*error).unwrap().verdict()), (2, Verdict::Permanent));
    let breaker = stack.breakers().get(tr_core::KeyRef::new("flight_search")).unwrap();
    assert_eq!(breaker.counts().consecutive_failures, 0);
    tool.oneshot(flight_search()).await.unwrap();
    assert_eq!((handle.calls(), breaker.state()), (4, BreakerState::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_mutating_tool_never_runs_twice_for_one_key() {
    let stack = ToolStack::default();
    let (tool, handle) = around(&stack, [Step::Hang]);
    let pay = || call("pay").effect(Effect::Mutating).idempotency_key("order-42");
    let error = tool.clone().oneshot(pay()).await.unwrap_err();
    assert_eq!((handle.calls(), failure_info(&*error).unwrap().ran()), (1, Ran::Unknown));
    for turn in ["1", "2", "3"] {
        let error = tool.clone().oneshot(pay().turn(turn)).await.unwrap_err();
        assert_eq!(failure_info(&*error).unwrap().ran(), Ran::Unknown);
        advance(Duration::from_secs(3600)).await;
    }
    assert_eq!(handle.calls(), 1);
}

#[test]
fn the_faults_of_all_layers_are_named_at_once() {
    let error = ToolStack::builder()
        .retry(|retry| retry.config(attempts(0, RetryConfig::per_request())))
        .breaker(|breaker| breaker.cooldown(Duration::ZERO))
        .loop_guard(|guard| guard.max_failures_per_turn(0))
        .attempt_timeout(|timeout| timeout.after(Duration::ZERO))
        .build()
        .unwrap_err()
        .to_string();
    assert_eq!(error.lines().count(), 4, "{error}");
}
