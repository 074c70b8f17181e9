//! The spans, their family and their attributes.
use crate::common::{Traced, attributes, call, tell, telling};
use opentelemetry::{
    Context,
    trace::{SpanId, Status, TraceContextExt as _, Tracer as _},
};
use opentelemetry_sdk::trace::{Sampler, SpanData};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tower::{Service, ServiceExt, layer::Layer};
use tr_core::{
    BoxError, BreakerState, CallInfo, Event, FailureInfo, Observer, Ran, ToolOutcome, Verdict,
    canonical::FingerprintKey,
};
use tr_telemetry::{Signals, TelemetryLayer};

const KEY: FingerprintKey = FingerprintKey::new([7; 32]);
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn signals(traced: &Traced) -> Signals {
    Signals::builder().tracer(traced.tracer()).fingerprint_key(KEY).without_logs().build().unwrap()
}

fn ok() -> Result<ToolOutcome, BoxError> {
    Ok(ToolOutcome::success(serde_json::json!("booked")))
}

fn named<'s>(spans: &'s [SpanData], name: &str) -> Vec<&'s SpanData> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn parents(spans: &[&SpanData]) -> Vec<SpanId> {
    spans.iter().map(|span| span.parent_span_id).collect()
}

/// Two attempts with a delay between them; the tool opens a span of its own.
async fn retried(traced: &Traced) -> Vec<SpanData> {
    let signals = signals(traced);
    let (observer, tracer) = (signals.observer(), traced.tracer());
    let tool = tower::service_fn(move |call: tr_core::ToolCall| {
        let tracer = tracer.clone();
        async move {
            drop(tracer.start("downstream"));
            match call.attempt() {
                0 => Err(BoxError::from(FailureInfo::new(
                    "timeout",
                    Ran::Unknown,
                    Verdict::TRANSIENT,
                ))),
                _ => ok(),
            }
        }
    });
    let attempt = TelemetryLayer::attempt(&signals).layer(tool);
    let retry = tower::service_fn(move |mut call: tr_core::ToolCall| {
        let (mut attempt, observer) = (attempt.clone(), observer.clone());
        async move {
            let _ = attempt.ready().await?.call(call.clone()).await;
            let (delay, latency) = (Duration::from_millis(250), Duration::ZERO);
            tell(
                &*observer,
                &CallInfo::of("pay"),
                Event::Retry { attempt: 0, delay, retry_after: None, reason: "timeout", latency },
            );
            call.set_attempt(1);
            attempt.ready().await?.call(call).await
        }
    });
    TelemetryLayer::call(&signals).layer(retry).oneshot(call("pay")).await.unwrap();
    traced.spans()
}

#[tokio::test]
async fn a_call_is_the_parent_of_its_attempts_and_delays() {
    let traced = Traced::new(Sampler::AlwaysOn);
    let spans = retried(&traced).await;
    assert_eq!(spans.len(), 6);
    let [root] = named(&spans, "tool_execution")[..] else { panic!("{spans:?}") };
    assert_eq!(root.parent_span_id, SpanId::INVALID);
    let id = root.span_context.span_id();

    let attempts = named(&spans, "tool_attempt");
    assert_eq!(parents(&attempts), [id, id]);
    let ids: Vec<_> = attempts.iter().map(|span| span.span_context.span_id()).collect();
    assert_eq!(parents(&named(&spans, "downstream")), ids);
    let [delay] = named(&spans, "retry_delay")[..] else { panic!("{spans:?}") };
    assert_eq!(delay.parent_span_id, id);
    let lasted = delay.end_time.duration_since(delay.start_time).unwrap();
    assert_eq!(lasted, Duration::from_millis(250));
    assert!(spans.iter().all(|span| span.span_context.trace_id() == root.span_context.trace_id()));
}

#[tokio::test]
async fn spans_have_the_seeds_attributes_and_those_of_the_conventions() {
    let traced = Traced::new(Sampler::AlwaysOn);
    let spans = retried(&traced).await;
    let hash = KEY.fingerprint(call("pay").id().unwrap().unwrap().key).to_string();
    let text = |pairs: &[(&str, &str)]| -> std::collections::BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(
        attributes(named(&spans, "tool_execution")[0]),
        text(&[
            ("tool.name", "pay"),
            ("idempotency.key", &hash),
            ("retry.attempt", "2"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "pay"),
            ("gen_ai.tool.call.id", "toolu_1"),
        ])
    );
    let [first, second] = named(&spans, "tool_attempt")[..] else { panic!("{spans:?}") };
    let failed = [("tool.name", "pay"), ("retry.attempt", "1"), ("error.type", "timeout")];
    assert_eq!(attributes(first), text(&failed));
    assert!(
        matches!(&first.status, Status::Error { description } if description.starts_with("timeout"))
    );
    assert_eq!(attributes(second), text(&[("tool.name", "pay"), ("retry.attempt", "2")]));
    assert_eq!(second.status, Status::Unset);
    let delay = [("retry.attempt", "1"), ("retry.reason", "timeout")];
    assert_eq!(attributes(named(&spans, "retry_delay")[0]), text(&delay));
}

#[tokio::test]
async fn a_refusal_shows_the_breaker_and_what_was_decided() {
    let traced = Traced::new(Sampler::AlwaysOn);
    let signals = signals(&traced);
    let told = |observer: &dyn Observer, call: &CallInfo<'_>| {
        let (breaker, state) = ("pay", BreakerState::Open);
        tell(observer, call, Event::BreakerRefused { breaker, state, shadow: false });
        tell(observer, call, Event::RetryRefused { attempt: 0, why: "budget" });
        tell(observer, call, Event::TimedOut { after: Duration::from_secs(1), ran: Ran::Unknown });
        tell(observer, call, Event::Loop { rule: "identical", count: 2, blocked: true });
    };
    let refused = || Err(FailureInfo::new("circuit_open", Ran::No, Verdict::TRANSIENT).into());
    let tool = telling(signals.observer(), told, refused);
    let tool = TelemetryLayer::attempt(&signals).layer(tool);
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap_err();
    let spans = traced.spans();
    for span in &spans {
        let attributes = attributes(span);
        assert_eq!(attributes["breaker.state"], "OPEN", "{}", span.name);
        assert_eq!(attributes["error.type"], "circuit_open");
        let attempt = if span.name == "tool_execution" { "0" } else { "1" };
        assert_eq!(attributes["retry.attempt"], attempt);
        assert!(matches!(span.status, Status::Error { .. }));
    }
    let events: Vec<_> = spans[0].events.iter().map(|event| &*event.name).collect();
    assert_eq!(events, ["retry_refused", "timed_out", "loop"]);
}

#[tokio::test]
async fn an_attempt_that_never_reached_its_tool_is_not_counted() {
    for (code, ran, attempts) in [
        ("circuit_open", Ran::No, "0"),
        ("timeout", Ran::No, "0"),
        ("timeout", Ran::Unknown, "1"),
        ("network_error", Ran::No, "1"),
    ] {
        let traced = Traced::new(Sampler::AlwaysOn);
        let signals = signals(&traced);
        let tool = tower::service_fn(move |_: tr_core::ToolCall| async move {
            Err::<tr_core::ToolOutcome, _>(BoxError::from(FailureInfo::new(
                code,
                ran,
                Verdict::TRANSIENT,
            )))
        });
        let tool = TelemetryLayer::attempt(&signals).layer(tool);
        TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap_err();
        let spans = traced.spans();
        let call = attributes(named(&spans, "tool_execution")[0]);
        assert_eq!(call["retry.attempt"], attempts, "{code} {ran:?}");
    }
}

#[tokio::test]
async fn a_traceparent_is_the_parent_unless_a_span_is_active() {
    let traced = Traced::new(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)));
    let signals = signals(&traced);
    let mut call = call("pay");
    call.parts_mut().trace.traceparent = Some(PARENT.into());
    let inside = Arc::new(Mutex::new(None));
    let seen = inside.clone();
    let tool = tower::service_fn(move |_| {
        *seen.lock().unwrap() = tr_telemetry::traceparent();
        async { ok() }
    });
    let mut tool = TelemetryLayer::call(&signals).layer(tool);
    tool.ready().await.unwrap().call(call.clone()).await.unwrap();
    let spans = traced.spans();
    assert_eq!(spans[0].span_context.trace_id().to_string(), PARENT[3..35]);
    assert_eq!(spans[0].parent_span_id.to_string(), PARENT[36..52]);
    let sent_on = format!("{}{}-01", &PARENT[..36], spans[0].span_context.span_id());
    assert_eq!(*inside.lock().unwrap(), Some(sent_on));

    let local = Traced::new(Sampler::AlwaysOn);
    let outer = local.tracer().start("outer");
    let id = opentelemetry::trace::Span::span_context(&outer).span_id();
    let active = Context::current_with_span(outer).attach();
    let running = tool.ready().await.unwrap().call(call);
    drop(active);
    running.await.unwrap();
    assert_eq!(traced.spans()[1].parent_span_id, id);
}

#[tokio::test]
async fn what_is_not_sampled_is_not_sampled_further_in() {
    let traced = Traced::new(Sampler::AlwaysOff);
    let inside = Arc::new(Mutex::new(None));
    let seen = inside.clone();
    let signals = signals(&traced);
    let tool = tower::service_fn(move |_| {
        *seen.lock().unwrap() = tr_telemetry::traceparent();
        async { ok() }
    });
    let tool = TelemetryLayer::attempt(&signals).layer(tool);
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap();
    assert!(traced.spans().is_empty());
    assert!(inside.lock().unwrap().as_deref().unwrap().ends_with("-00"));
    assert_eq!(tr_telemetry::traceparent(), None);
}

#[tokio::test]
async fn within_a_span_that_is_not_sampled_that_one_stands_for_all() {
    let traced = Traced::new(Sampler::AlwaysOff);
    let inside = Arc::new(Mutex::new(None));
    let seen = inside.clone();
    let tool = tower::service_fn(move |_| {
        *seen.lock().unwrap() = tr_telemetry::traceparent();
        async { ok() }
    });
    let mut tool = TelemetryLayer::call(&signals(&traced)).layer(tool);
    let outer = traced.tracer().start("outer");
    let active = Context::current_with_span(outer).attach();
    let outer = tr_telemetry::traceparent();
    let running = tool.ready().await.unwrap().call(call("pay"));
    drop(active);
    running.await.unwrap();
    assert!(outer.is_some() && *inside.lock().unwrap() == outer);

    let mut call = call("pay");
    let remote = PARENT.replace("-01", "-00");
    call.parts_mut().trace.traceparent = Some(remote.as_str().into());
    tool.ready().await.unwrap().call(call).await.unwrap();
    assert_eq!(*inside.lock().unwrap(), Some(remote));
    assert!(traced.spans().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_ends_all_spans() {
    let traced = Traced::new(Sampler::AlwaysOn);
    let signals = signals(&traced);
    let tool =
        tower::service_fn(async |_| std::future::pending::<Result<ToolOutcome, BoxError>>().await);
    let tool = TelemetryLayer::call(&signals).layer(TelemetryLayer::attempt(&signals).layer(tool));
    let running = tool.oneshot(call("pay"));
    tokio::time::timeout(Duration::from_secs(2), running).await.unwrap_err();
    let spans = traced.spans();
    assert_eq!(spans.len(), 2);
    assert!(spans.iter().all(|span| attributes(span)["error.type"] == "cancelled"));
}
