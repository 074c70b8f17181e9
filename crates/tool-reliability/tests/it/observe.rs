//! What the modes observe and shadow report of calls that they do not change.
use crate::common::down;
use crate::metered::Metered;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, timeout};
use tool_reliability::{
    Hook, Mode, Rollout, ToolStack,
    adapter::ToolFailed,
    telemetry::{JsonLines, Signals, traceparent},
};
use tower::{ServiceExt, service_fn};
use tr_core::{
    BoxError, Effect, FailureInfo, KeyRef, Params, Ran, ToolCall, ToolManifest, ToolOutcome,
    Verdict, find,
};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails, reports},
    logs::Logs,
    tool::Step,
};
use tracing_subscriber::{prelude::*, registry};

/// A stack, and everything that it reports.
struct Bench {
    stack: ToolStack,
    metered: Metered,
    spans: InMemorySpanExporter,
    logs: Logs,
    _listening: tracing::subscriber::DefaultGuard,
}

impl Bench {
    fn new(mode: Mode) -> Self {
        Self::with(mode, |builder| builder)
    }

    fn with(
        mode: Mode,
        change: impl FnOnce(tool_reliability::Builder) -> tool_reliability::Builder,
    ) -> Self {
        let (metered, spans) = (Metered::new(), InMemorySpanExporter::default());
        let provider = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let signals = Signals::builder().meter(metered.meter()).tracer(provider.tracer("test"));
        let builder = ToolStack::builder()
            .rollout(Rollout::new(mode))
            .telemetry(signals.tools(["pay"]).build().unwrap());
        let stack = change(builder).build().unwrap();
        let (logs, _listening) = Logs::listen(|logs| registry().with(JsonLines::new(logs)));
        Self { stack, metered, spans, logs, _listening }
    }

    fn events(&self) -> Vec<Value> {
        self.logs.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn names_of_events(&self) -> Vec<String> {
        let name = |event: &Value| event["event"].as_str().unwrap().to_owned();
        self.events().iter().map(name).collect()
    }

    fn spans(&self) -> Vec<String> {
        let spans = self.spans.get_finished_spans().unwrap();
        spans.iter().map(|span| span.name.to_string()).collect()
    }
}

fn pay() -> ToolCall {
    ToolCall::new("pay", Params::empty_object()).effect(Effect::Idempotent).session("s").turn("t")
}

/// Answers with this JSON.
fn says(
    json: &'static str,
) -> impl tower::Service<ToolCall, Response = ToolOutcome, Error = BoxError, Future: Send> + Clone {
    service_fn(async move |_: ToolCall| {
        let value: Value = serde_json::from_str(json)?;
        Ok::<_, BoxError>(ToolOutcome::success(value))
    })
}

fn table<const N: usize>(rows: [(&str, f64); N]) -> BTreeMap<String, f64> {
    rows.into_iter().map(|(series, value)| (series.to_owned(), value)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_observed_failure_is_reported_and_nothing_else_happens() {
    let bench = Bench::new(Mode::Observe);
    let tool = ScriptedTool::script([down()]).then_repeat_last();
    let handle = tool.handle();
    let guarded = bench.stack.service(tool);
    let (call, started) = (pay().idempotency_key("k"), Instant::now());
    // As many as open a breaker, end a turn and use up retries.
    for _ in 0..20 {
        let error = guarded.clone().oneshot(call.clone()).await.unwrap_err();
        assert_eq!(error.to_string(), "http_503: the tool did not run");
        assert!(find::<ToolFailed>(&*error).is_none(), "the tool's own error");
        assert!(find::<FailureInfo>(&*error).is_some());
    }
    assert_eq!((handle.calls(), started.elapsed()), (20, Duration::ZERO));
    for request in handle.requests() {
        assert!(request.parts().params.ptr_eq(&call.parts().params));
    }
    assert!(bench.stack.records().records().is_empty());
    assert!(bench.stack.breakers().get(KeyRef::new("pay")).is_none());

    let wanted = table([
        ("openclaw_tool_calls{scope=session,status=retriable_error,tool=pay}", 20.0),
        ("openclaw_tool_call_duration_ms{status=retriable_error,tool=pay}", 20.0),
        ("openclaw_tool_info{effect=idempotent,tool=pay}", 1.0),
    ]);
    assert_eq!(bench.metered.read(), wanted);
    assert_eq!(bench.spans(), ["tool_attempt", "tool_execution"].repeat(20));
    let events = bench.events();
    assert_eq!(bench.names_of_events(), ["tool_call_start", "tool_call_end"].repeat(20));
    let end = &events[1];
    assert_eq!((&end["errorCode"], &end["attempt"]), (&json!("http_503"), &json!(1)));
    assert_eq!((&end["shadow"], &end["fromCache"]), (&Value::Null, &json!(false)));
}

#[tokio::test(start_paused = true)]
async fn an_observed_tool_has_its_time_and_its_place_in_the_trace() {
    let bench = Bench::new(Mode::Observe);
    let sent = Arc::new(Mutex::new(None));
    let seen = sent.clone();
    let tool = service_fn(move |_: ToolCall| {
        let seen = seen.clone();
        async move {
            *seen.lock().unwrap() = traceparent();
            // Longer than an attempt may take under the stack.
            tokio::time::sleep(Duration::from_secs(45)).await;
            Ok::<_, BoxError>(ToolOutcome::success(json!("late")))
        }
    });
    let outcome = bench.stack.service(tool).oneshot(pay()).await.unwrap();
    assert_eq!(outcome.content().unwrap().get(), r#""late""#);
    // Nothing is added to the tool's answer.
    assert!(outcome.parts().span_id.is_none() && outcome.parts().emitted_spans.is_empty());
    assert!(outcome.parts().notes.is_empty() && !outcome.from_cache());
    let attempt = bench.spans.get_finished_spans().unwrap()[0].span_context.span_id();
    let parent = sent.lock().unwrap().clone().unwrap();
    assert_eq!(parent.split('-').nth(2).unwrap(), attempt.to_string());
    let end = &bench.events()[1];
    assert_eq!((&end["state"], &end["elapsedMs"]), (&json!("done"), &json!(45_000)));
}

#[tokio::test(start_paused = true)]
async fn a_silent_failure_is_observed_as_one_and_answered_as_it_is() {
    let bench = Bench::new(Mode::Observe);
    let tool = says(r#"{ "ok": false, "error": "card declined" }"#);
    let outcome = bench.stack.service(tool).oneshot(pay()).await.unwrap();
    assert!(outcome.error().is_none());
    assert_eq!(bench.events()[1]["event"], "tool_call_end");
    let metrics = bench.metered.read();
    assert!(metrics.keys().any(|it| it.contains("status=error")), "{metrics:?}");

    // Unless the tool says that it is none.
    let bench = Bench::new(Mode::Observe);
    let tool = says(r#"{ "ok": false }"#);
    let mut manifest = ToolManifest::new("pay");
    manifest.silent_failures = false;
    let call = pay().manifested(Arc::new(manifest));
    bench.stack.service(tool).oneshot(call).await.unwrap();
    let metrics = bench.metered.read();
    assert!(metrics.keys().any(|it| it.contains("status=success")), "{metrics:?}");
}

#[tokio::test(start_paused = true)]
async fn an_observed_call_whose_caller_leaves_is_reported_as_cancelled() {
    let bench = Bench::new(Mode::Observe);
    let tool = service_fn(|_: ToolCall| pending::<Result<ToolOutcome, BoxError>>());
    let call = bench.stack.service(tool).oneshot(pay());
    assert!(timeout(Duration::from_secs(1), call).await.is_err());
    assert_eq!(bench.events()[1]["errorCode"], "cancelled");
    assert_eq!(bench.spans(), ["tool_attempt", "tool_execution"]);
}

#[derive(Debug)]
struct Panics;

impl Hook for Panics {
    fn before(&self, _: &ToolCall) {
        panic!("a hook is called inside of what observes the call");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_an_observed_call_is_reported() {
    let bench = Bench::with(Mode::Observe, |builder| builder.hook(Panics));
    let tool = bench.stack.service(ScriptedTool::script([answers("ok")]));
    let ended = tokio::spawn(tool.oneshot(pay())).await;
    assert!(ended.unwrap_err().is_panic());
}

/// The real calls, and what enforcing would have done to them.
#[tokio::test(start_paused = true)]
async fn in_shadow_each_decision_is_counted_beside_the_real_calls() {
    let bench = Bench::with(Mode::Shadow, |builder| {
        builder
            .attempt_timeout(|attempt| attempt.after(Duration::from_secs(1)))
            .breaker(|breaker| breaker.consecutive_failures(3))
            .loop_guard(|guard| guard.max_identical_failures(2))
    });
    let service = |steps: Vec<Step<ToolOutcome>>| {
        bench.stack.service(ScriptedTool::script(steps).then_repeat_last())
    };
    // Retried; then answered from the record, and refused for other params.
    let _ = service(vec![down()]).oneshot(pay()).await;
    for params in ["{}", "{}", r#"{"other": 1}"#] {
        let mut call = pay().idempotency_key("k");
        call.parts_mut().params = Params::from_text(params).unwrap();
        service(vec![answers("ok")]).oneshot(call).await.unwrap();
    }
    // Timed out, and not to be repeated.
    let slow = Step::after(Duration::from_secs(2), answers("late"));
    let other = pay().effect(Effect::Mutating).session("other");
    service(vec![slow]).oneshot(other).await.unwrap();
    // Two that are the same: the second is noted, the third would not have run.
    for _ in 0..3 {
        let bad = reports("bad", "Missing required parameter: path");
        service(vec![bad]).oneshot(pay().turn("u")).await.unwrap();
    }
    let metrics = bench.metered.read();
    let decided = |decision: &str| {
        let series = format!("openclaw_tool_shadow_decisions{{decision={decision},tool=pay}}");
        metrics.get(&series).copied().unwrap_or_default()
    };
    for (decision, count) in [
        ("retry", 1.0),
        ("replay", 1.0),
        ("key_conflict", 1.0),
        ("timeout", 1.0),
        ("loop_block", 1.0),
        ("breaker_rejection", 0.0),
    ] {
        assert_eq!(decided(decision), count, "{decision} in {metrics:#?}");
    }
    assert_eq!(metrics["openclaw_tool_shadow_calls{tool=pay}"], 8.0);
    // What really happened.
    let calls = |status: &str| {
        metrics[&format!("openclaw_tool_calls{{scope=session,status={status},tool=pay}}")]
    };
    assert_eq!((calls("success"), calls("retriable_error"), calls("error")), (4.0, 1.0, 3.0));
    let decisions = ["retry", "idempotency_hits", "circuit"];
    let is_mixed = |it: &String| !it.contains("shadow") && decisions.iter().any(|d| it.contains(d));
    assert!(!metrics.keys().any(|it| is_mixed(it) && !it.contains("retriable")), "{metrics:#?}");
    // The log tells decisions alone, and every call has its spans.
    assert!(bench.events().iter().all(|event| event["shadow"] == true));
    assert_eq!(bench.spans(), ["tool_attempt", "tool_execution"].repeat(8));
}

#[tokio::test(start_paused = true)]
async fn in_shadow_a_rejection_is_counted_and_the_breaker_shows_its_state() {
    let bench = Bench::with(Mode::Shadow, |builder| {
        builder.breaker(|breaker| breaker.consecutive_failures(2))
    });
    let reset = fails("reset", Verdict::TRANSIENT, Ran::Unknown);
    let tool = bench.stack.service(ScriptedTool::script([reset]).then_repeat_last());
    for turn in 0..4 {
        let call = pay().effect(Effect::Mutating).turn(turn.to_string());
        tool.clone().oneshot(call).await.unwrap_err();
    }
    let metrics = bench.metered.read();
    let rejected = "openclaw_tool_shadow_decisions{decision=breaker_rejection,tool=pay}";
    assert_eq!(metrics.get(rejected), Some(&2.0), "{metrics:#?}");
    let open = "openclaw_tool_circuit_breaker_state{state=OPEN,tool=pay}";
    assert_eq!(metrics.get(open), Some(&1.0));
}

#[tokio::test(start_paused = true)]
async fn a_breaker_s_own_shadow_mode_is_counted_among_the_decisions() {
    let bench = Bench::with(Mode::Enforce, |builder| {
        let mode = tool_reliability::breaker::Mode::Shadow;
        builder.breaker(|breaker| breaker.mode(mode).forced_open(true))
    });
    let tool = bench.stack.service(ScriptedTool::script([answers("ok")]));
    tool.oneshot(pay()).await.unwrap();
    let metrics = bench.metered.read();
    let rejected = "openclaw_tool_shadow_decisions{decision=breaker_rejection,tool=pay}";
    assert_eq!(metrics.get(rejected), Some(&1.0), "{metrics:#?}");
    assert!(!metrics.contains_key("openclaw_tool_shadow_calls{tool=pay}"));
}
