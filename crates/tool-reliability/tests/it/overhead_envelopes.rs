//! What a call through envelopes takes, with spans and metrics: reading, the stack, writing.
use bytes::Bytes;
use opentelemetry::{metrics::MeterProvider as _, trace::TracerProvider as _};
use opentelemetry_sdk::{
    metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider},
    trace::{InMemorySpanExporter, SdkTracerProvider},
};
use std::{convert::Infallible, time::Duration};
use tool_reliability::{Envelopes, ToolStack, telemetry::Signals};
use tower::{ServiceExt, service_fn};
use tr_core::{BoxError, ToolCall, ToolOutcome};
use tr_testkit::overhead::Plan;

/// The processor's time of this thread: other programs do not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

#[tokio::test]
async fn ut_11_a_call_through_envelopes_takes_less_than_five_milliseconds() {
    let spans = InMemorySpanExporter::default();
    let tracers = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
    let metrics = InMemoryMetricExporter::default();
    let meters = SdkMeterProvider::builder()
        .with_reader(PeriodicReader::builder(metrics.clone()).build())
        .build();
    let signals = Signals::builder().tracer(tracers.tracer("test")).meter(meters.meter("test"));
    let stack = ToolStack::builder().telemetry(signals.build().unwrap()).build().unwrap();
    let tool = service_fn(async |call: ToolCall| {
        Ok::<_, BoxError>(ToolOutcome::success(call.parts().params.clone()))
    });
    let tools = Envelopes::new(stack.service(tool))
        .map_request(|text: String| text.into())
        .map_response(|answer: tool_reliability::envelopes::Answer| answer.to_bytes());
    let nothing = service_fn(async |text: String| Ok::<_, Infallible>(Bytes::from(text)));
    let request = |n| {
        format!(
            r#"{{"tool": "exec", "action": "run", "params": {{"command": "git status"}},
            "idempotencyKey": "key-{n}", "timeout": 30000, "cancellationId": "c-{n}",
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331",
            "hints": {{"retryPolicy": {{"maxAttempts": 2}}}}}}"#
        )
    };
    let plan = Plan::new().rounds(500).calls(1).clock(processor_time);
    let overhead = plan.measure(nothing, tools, request).await.unwrap();
    let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| overhead.added.percentile(percent));
    assert!(0.0 < p50 && p50 <= p95 && p95 <= p99, "{overhead}");
    assert!(p95 < 5e6, "{overhead}");

    let spans = spans.get_finished_spans().unwrap();
    let calls = spans.iter().filter(|span| span.name == "tool_execution").count();
    assert_eq!(calls, 501, "one call more filled the caches");
    meters.force_flush().unwrap();
    assert!(!metrics.get_finished_metrics().unwrap().is_empty());
}
