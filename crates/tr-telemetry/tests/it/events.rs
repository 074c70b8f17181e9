//! The events, field by field.
use crate::common::{call, tell, telling};
use crate::lines::Lines;
use serde_json::{Value, json};
use std::time::Duration;
use tower::{Service, ServiceExt, layer::Layer};
use tr_core::{
    BoxError, BreakerState, DefaultPolicy, Effect, Event, FailureInfo, MatchedOn, Ran,
    RequestPolicy, ToolError, ToolOutcome, Verdict, canonical::FingerprintKey,
};
use tr_telemetry::{Names, Signals, TelemetryLayer};

const KEY: FingerprintKey = FingerprintKey::new([7; 32]);

fn signals() -> Signals {
    Signals::builder().fingerprint_key(KEY).build().unwrap()
}

fn hash() -> Value {
    KEY.fingerprint(call("pay").id().unwrap().unwrap().key).to_string().into()
}

fn ok() -> Result<ToolOutcome, BoxError> {
    Ok(ToolOutcome::success(json!("booked")))
}

/// Those of the fields that are known.
fn known(event: &Value) -> Value {
    let fields = event.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_says_start_and_end_with_the_seeds_fields() {
    let (lines, _listening) = Lines::listen();
    let tool = tower::service_fn(async |_| {
        tokio::time::sleep(Duration::from_millis(1523)).await;
        ok()
    });
    TelemetryLayer::call(&signals()).layer(tool).oneshot(call("pay")).await.unwrap();

    let events = lines.events();
    assert_eq!(events.len(), 2);
    assert_eq!(
        known(&events[0]),
        json!({
            "timestamp": "2026-02-21T11:20:00.000Z", "level": "info", "event": "tool_call_start",
            "requestId": "r-1", "toolName": "pay", "sessionKey": "s-1", "correlationId": "c-1",
            "idempotencyKeyHash": hash(), "state": "inflight", "attempt": 1, "elapsedMs": 0,
            "fromCache": false,
        })
    );
    assert_eq!(
        known(&events[1]),
        json!({
            "timestamp": "2026-02-21T11:20:00.000Z", "level": "info", "event": "tool_call_end",
            "requestId": "r-1", "toolName": "pay", "sessionKey": "s-1", "correlationId": "c-1",
            "idempotencyKeyHash": hash(), "state": "done", "attempt": 1, "elapsedMs": 1523,
            "fromCache": false,
        })
    );
    // What is not known is there as well, so that lines have one form.
    for field in ["errorCode", "retriable", "breakerState"] {
        assert_eq!(events[1].get(field), Some(&Value::Null), "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_names_its_code_and_whether_it_may_be_retried() {
    let (lines, _listening) = Lines::listen();
    let tool = tower::service_fn(async |_| {
        Ok::<_, BoxError>(ToolOutcome::failure(ToolError::new("503", "upstream is down")))
    });
    let tool = TelemetryLayer::call(&signals()).layer(tool);
    let read = call("pay").effect(Effect::ReadOnly);
    tool.clone().oneshot(read).await.unwrap();
    // A payment that may have been made is reported as not retriable.
    tool.oneshot(call("pay")).await.unwrap();
    assert_eq!(lines.events()[3]["retriable"], json!(false));
    let end = &lines.events()[1];
    assert_eq!((&end["event"], &end["level"]), (&json!("tool_call_end"), &json!("warn")));
    assert_eq!((&end["state"], &end["retriable"]), (&json!("failed"), &json!(true)));
    assert_eq!(end["error"], "upstream is down");
    assert!(end["errorCode"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_an_open_breaker_refused_is_blocked() {
    let (lines, _listening) = Lines::listen();
    let signals = signals();
    let tool = telling(
        signals.observer(),
        |observer, call| {
            let (breaker, state) = ("pay", BreakerState::Open);
            tell(observer, call, Event::BreakerRefused { breaker, state, shadow: false });
        },
        || Err(FailureInfo::new("circuit_open", Ran::No, Verdict::TRANSIENT).into()),
    );
    let tool = TelemetryLayer::attempt(&signals).layer(tool);
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap_err();

    let end = known(&lines.events()[1]);
    for (field, value) in [
        ("event", json!("tool_call_blocked")),
        ("state", json!("failed")),
        ("attempt", json!(0)),
        ("fromCache", json!(false)),
        ("errorCode", json!("circuit_open")),
        ("retriable", json!(true)),
        ("breakerState", json!("OPEN")),
    ] {
        assert_eq!(end[field], value, "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_refusal_without_an_attempt_is_blocked_and_nothing_else() {
    let codes = [
        ("circuit_open", Ran::No, "tool_call_blocked", "failed"),
        ("idempotency_conflict", Ran::No, "tool_call_blocked", "failed"),
        ("idempotency_in_flight", Ran::No, "tool_call_blocked", "inflight"),
        ("outcome_unknown", Ran::Unknown, "tool_call_blocked", "unknown"),
        ("answer_not_kept", Ran::Yes, "tool_call_blocked", "done"),
        ("record_unreadable", Ran::Yes, "tool_call_blocked", "unknown"),
        ("loop_detected", Ran::No, "tool_call_blocked", "failed"),
        ("tool_error_limit", Ran::No, "tool_call_blocked", "failed"),
        ("invalid_envelope", Ran::No, "tool_call_blocked", "failed"),
        ("store_full", Ran::No, "tool_call_blocked", "failed"),
        ("store_unavailable", Ran::No, "tool_call_blocked", "failed"),
        ("session_corrupt", Ran::No, "tool_call_blocked", "failed"),
        ("circuit_open", Ran::Unknown, "tool_call_end", "failed"),
        ("timeout", Ran::Unknown, "tool_call_end", "failed"),
        ("retry_exhausted", Ran::Yes, "tool_call_end", "failed"),
        ("unclassified", Ran::No, "tool_call_end", "failed"),
    ];
    for (code, ran, event, state) in codes {
        let (lines, _listening) = Lines::listen();
        let tool = tower::service_fn(move |_| async move {
            Err::<ToolOutcome, BoxError>(FailureInfo::new(code, ran, Verdict::Permanent).into())
        });
        TelemetryLayer::call(&signals()).layer(tool).oneshot(call("pay")).await.unwrap_err();
        let end = &lines.events()[1];
        assert_eq!((&end["event"], &end["state"]), (&json!(event), &json!(state)), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_are_told_and_attempts_counted() {
    let (lines, _listening) = Lines::listen();
    let signals = signals();
    let retried = |observer: &dyn tr_core::Observer, call: &tr_core::CallInfo<'_>| {
        for attempt in 0..2 {
            let (delay, latency) = (Duration::from_millis(200), Duration::from_millis(30));
            tell(
                observer,
                call,
                Event::Retry {
                    attempt,
                    delay,
                    retry_after: Some(latency),
                    reason: "http_unavailable",
                    latency,
                },
            );
        }
    };
    let tool = telling(signals.observer(), retried, ok);
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap();

    let events = lines.events();
    assert_eq!(events.len(), 4);
    assert_eq!(
        known(&events[2]),
        json!({
            "timestamp": "2026-02-21T11:20:00.000Z", "level": "warn", "event": "tool_call_retry",
            "requestId": "r-1", "toolName": "pay", "sessionKey": "s-1", "correlationId": "c-1",
            "idempotencyKeyHash": hash(), "state": "inflight", "attempt": 2, "elapsedMs": 30,
            "fromCache": false, "errorCode": "http_unavailable", "retriable": true, "delayMs": 200,
            "retryAfterMs": 30,
        })
    );
    assert_eq!((&events[3]["event"], &events[3]["attempt"]), (&json!("tool_call_end"), &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_from_the_cache_and_had_no_attempt() {
    let (lines, _listening) = Lines::listen();
    let signals = signals();
    let tool = telling(
        signals.observer(),
        |observer, call| {
            tell(
                observer,
                call,
                Event::Replayed { matched: MatchedOn::Completed, state: "failed" },
            );
        },
        || Ok(ToolOutcome::failure(ToolError::new("ENOENT", "no such file"))),
    );
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap();
    let end = &lines.events()[1];
    assert_eq!((&end["event"], &end["state"]), (&json!("tool_call_end"), &json!("failed")));
    assert_eq!((&end["fromCache"], &end["attempt"]), (&json!(true), &json!(0)));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_is_told_too() {
    let (lines, _listening) = Lines::listen();
    let tool =
        tower::service_fn(async |_| std::future::pending::<Result<ToolOutcome, BoxError>>().await);
    let mut tool = TelemetryLayer::call(&signals()).layer(tool);
    let running = tool.ready().await.unwrap().call(call("pay"));
    tokio::time::timeout(Duration::from_secs(2), running).await.unwrap_err();
    let end = &lines.events()[1];
    assert_eq!((&end["event"], &end["state"]), (&json!("tool_call_end"), &json!("cancelled")));
    assert_eq!((&end["errorCode"], &end["elapsedMs"]), (&json!("cancelled"), &json!(2000)));
}

#[test]
fn a_tool_that_panics_leaves_an_unknown_outcome() {
    let (lines, _listening) = Lines::listen();
    let tool =
        tower::service_fn(async |_| -> Result<ToolOutcome, BoxError> { panic!("on purpose") });
    let tool = TelemetryLayer::call(&signals()).layer(tool);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let running = std::panic::AssertUnwindSafe(|| runtime.block_on(tool.oneshot(call("pay"))));
    std::panic::catch_unwind(running).unwrap_err();
    let end = &lines.events()[1];
    assert_eq!((&end["event"], &end["attempt"]), (&json!("tool_call_end"), &json!(1)));
    assert_eq!((&end["state"], &end["errorCode"]), (&json!("unknown"), &json!("outcome_unknown")));
}

#[test]
fn a_shadow_decision_is_told_though_nothing_was_refused() {
    let (lines, _listening) = Lines::listen();
    let observer = signals().observer();
    let (breaker, state) = ("pay", BreakerState::Open);
    let call = call("pay");
    let event = Event::BreakerRefused { breaker, state, shadow: true };
    tell(&*observer, &DefaultPolicy.info(&call), event);
    let event = &lines.events()[0];
    assert_eq!((&event["event"], &event["shadow"]), (&json!("tool_call_blocked"), &json!(true)));
    // The call runs: who repeats it does so a second time.
    assert_eq!((&event["errorCode"], &event["retriable"]), (&json!("circuit_open"), &json!(false)));
}

#[tokio::test(start_paused = true)]
async fn what_shadow_signals_tell_says_that_it_was_not_done() {
    let (lines, _listening) = Lines::listen();
    let signals = Signals::builder().names([Names::Utee]).build().unwrap().shadow();
    let tool = tower::service_fn(async |_| ok());
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap();
    let (attempt, delay) = (0, Duration::from_millis(200));
    let event =
        Event::Retry { attempt, delay, retry_after: None, reason: "503", latency: Duration::ZERO };
    tell(&*signals.observer(), &DefaultPolicy.info(&call("pay")), event);

    let events = lines.events();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    // UTEE's event has no field for it, so it is not made.
    assert_eq!(names, ["tool_call_start", "tool_call_end", "tool_call_retry"]);
    assert!(events.iter().all(|event| event["shadow"] == true), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn utee_has_its_own_event_with_its_own_fields() {
    let (lines, _listening) = Lines::listen();
    let signals = Signals::builder().names([Names::Utee]).build().unwrap();
    let tool = tower::service_fn(async |_| ok());
    let mut exec = call("exec");
    exec.parts_mut().tool = tr_core::ToolId::from_parts(Some("ns"), "exec", Some("run"));
    TelemetryLayer::call(&signals).layer(tool).oneshot(exec).await.unwrap();
    let event = lines.events().pop().unwrap();
    assert_eq!(
        known(&event),
        json!({
            "timestamp": "2026-02-21T11:20:00.000Z", "level": "info", "event": "tool_invocation",
            "requestId": "r-1", "tool": "ns/exec", "action": "run", "durationMs": 0, "status": "success",
        })
    );
    assert!(event.get("traceId").is_some(), "null without a tracer");
}

#[tokio::test(start_paused = true)]
async fn params_show_their_shape_if_asked_for() {
    let (lines, _listening) = Lines::listen();
    let signals = Signals::builder().params_shape().fingerprint_key(KEY).build().unwrap();
    let tool = tower::service_fn(async |_| ok());
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap();
    let start = &lines.events()[0];
    assert_eq!(start["params"], "to:string(3) seats:number");
    assert_eq!(start["paramsBytes"], 22);
    assert_eq!(start["paramsDigest"], KEY.fingerprint(r#"{"to":"LIS","seats":2}"#).to_string());
}
