//! Where a call stands in a trace: what comes with it, what goes along, what it says of itself.
use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tool_reliability::{
    ToolStack,
    telemetry::{JsonLines, Names, Signals, traceparent},
};
use tower::{ServiceExt, service_fn};
use tr_core::{
    BoxError, Effect, FailureInfo, Ran, ToolCall, ToolOutcome, Verdict, call::CallContext,
};
use tr_testkit::logs::Logs;
use tr_wire::{Arrival, bs_tim_5, utee};
use tracing_subscriber::{prelude::*, registry};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

struct Traced {
    stack: ToolStack,
    exporter: InMemorySpanExporter,
    /// What the tool would have sent along, attempt by attempt.
    sent: Arc<Mutex<Vec<String>>>,
}

impl Traced {
    fn new() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let signals = Signals::builder().tracer(provider.tracer("test")).build().unwrap();
        let stack = ToolStack::builder().telemetry(signals).build().unwrap();
        Self { stack, exporter, sent: Arc::default() }
    }

    /// Runs a call whose first attempt fails; the second opens a span of its own.
    async fn run(&self, call: ToolCall) -> ToolOutcome {
        let sent = self.sent.clone();
        let tool = service_fn(move |call: ToolCall| {
            let sent = sent.clone();
            async move {
                sent.lock().unwrap().push(traceparent().expect("a span is active"));
                if call.attempt() == 0 {
                    return Err(BoxError::from(FailureInfo::new(
                        "busy",
                        Ran::No,
                        Verdict::TRANSIENT,
                    )));
                }
                let mut outcome = ToolOutcome::default();
                outcome.parts_mut().emitted_spans.push("1111111111111111".into());
                Ok(outcome)
            }
        });
        self.stack.service(tool).oneshot(call.effect(Effect::ReadOnly)).await.unwrap()
    }

    fn spans(&self, name: &str) -> Vec<SpanData> {
        let spans = self.exporter.get_finished_spans().unwrap();
        spans.into_iter().filter(|span| span.name == name).collect()
    }
}

fn id(span: &SpanData) -> String {
    span.span_context.span_id().to_string()
}

fn utee_call(ids: &str) -> ToolCall {
    let text = format!(r#"{{"tool": "clock", "action": "", "params": {{}}{ids}}}"#);
    let request = utee::ToolRequest::read(&text).unwrap();
    request.into_call(CallContext::default(), || "r-1".into()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn ut_08_ids_come_in_go_along_and_come_back() {
    let traced = Traced::new();
    let call = utee_call(&format!(
        r#", "traceId": "{TRACE}", "spanId": "{CALLER}", "parentSpanId": "00f067aa0ba902b7""#
    ));
    let outcome = traced.run(call.clone()).await;

    let [execution] = &traced.spans("tool_execution")[..] else { panic!("one call, one span") };
    assert_eq!(execution.span_context.trace_id().to_string(), TRACE);
    assert_eq!(execution.parent_span_id.to_string(), CALLER, "nested under the caller's span");
    let attempts = traced.spans("tool_attempt");
    assert_eq!(attempts.len(), 2);
    assert!(attempts.iter().all(|it| it.parent_span_id == execution.span_context.span_id()));
    // Out: what each attempt calls further in belongs to that attempt.
    let wanted: Vec<_> = attempts.iter().map(|it| format!("00-{TRACE}-{}-01", id(it))).collect();
    assert_eq!(*traced.sent.lock().unwrap(), wanted);

    let response = utee::ToolResponse::of(&call, Ok(&outcome), Duration::ZERO);
    assert_eq!(response.span_id.as_deref(), Some(&*id(execution)));
    let emitted = response.emitted_spans.unwrap();
    let wanted = ["1111111111111111".to_owned(), id(&attempts[0]), id(&attempts[1])];
    assert_eq!(
        emitted.iter().map(|id| &**id).collect::<Vec<_>>(),
        wanted,
        "its own, and each attempt"
    );
}

#[tokio::test(start_paused = true)]
async fn ut_08_each_invocation_has_a_span_of_its_own_a_replay_too() {
    let traced = Traced::new();
    let call = utee_call(r#", "idempotencyKey": "k""#);
    let first = traced.run(call.clone()).await;
    let again = traced.run(call).await;
    assert!(again.from_cache());
    let spans: Vec<_> = traced.spans("tool_execution").iter().map(id).collect();
    let said = [&first, &again].map(|it| it.parts().span_id.as_deref().unwrap().to_owned());
    assert_eq!(said.to_vec(), spans);
    assert_ne!(said[0], said[1]);
    // Nobody named a trace: each is the root of its own.
    let roots = traced.spans("tool_execution");
    assert!(roots.iter().all(|span| span.parent_span_id == SpanId::INVALID));
}

#[tokio::test(start_paused = true)]
async fn ut_08_a_traceparent_is_understood_as_it_is() {
    let traced = Traced::new();
    let text = format!(
        r#"{{"contractVersion": "1.1", "requestId": "r", "toolName": "clock", "toolNamespace": "t",
        "target": {{"sessionKey": "s", "actorId": "a"}},
        "payload": {{"version": "1.0", "params": {{}}}},
        "transport": {{"dedupeMode": "enforced", "retryBudget": {{"maxAttempts": 4, "maxElapsedMs": 30000}}}},
        "control": {{}}, "trace": {{"traceparent": "00-{TRACE}-{CALLER}-01"}}}}"#
    );
    let now = tokio::time::Instant::now().into_std();
    let call = bs_tim_5::ToolCallEnvelope::read(text.as_bytes()).unwrap();
    traced.run(call.into_call(Arrival { now, unix_ms: 0 }).unwrap()).await;
    let [execution] = &traced.spans("tool_execution")[..] else { panic!("one call, one span") };
    assert_eq!(execution.span_context.trace_id().to_string(), TRACE);
    assert_eq!(execution.parent_span_id.to_string(), CALLER);
}

#[tokio::test(start_paused = true)]
async fn ut_08_an_id_of_another_kind_is_no_parent_and_is_logged() {
    let (logs, _listening) = Logs::listen(|logs| registry().with(JsonLines::new(logs)));
    let signals = Signals::builder().names([Names::Utee]).build().unwrap();
    let stack = ToolStack::builder().telemetry(signals).build().unwrap();
    let tool = service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
    let ids = r#", "traceId": "trace-456", "spanId": "span-1""#;
    stack.service(tool).oneshot(utee_call(ids)).await.unwrap();
    let log = logs.text();
    let invocation = log.lines().find(|line| line.contains("tool_invocation")).unwrap();
    let invocation: serde_json::Value = serde_json::from_str(invocation).unwrap();
    assert_eq!(invocation["traceId"], "trace-456");

    let traced = Traced::new();
    traced.run(utee_call(ids)).await;
    let [execution] = &traced.spans("tool_execution")[..] else { panic!("one call, one span") };
    assert_eq!(execution.parent_span_id, SpanId::INVALID);
}
