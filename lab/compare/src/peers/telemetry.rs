//! Metrics and spans: ours, and the same by the SDK's own means and by tracing-opentelemetry.
use benches::{
    call,
    run::{Comes, Run},
};
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter, MeterProvider as _},
    trace::TracerProvider as _,
};
use opentelemetry_sdk::{
    metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider},
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};
use std::sync::Arc;
use tokio::time::Instant;
use tower::{Layer, Service};
use tr_core::ToolCall;
use tr_telemetry::{Signals, TelemetryLayer};
use tracing::{Instrument as _, dispatcher};
use tracing_subscriber::layer::SubscriberExt as _;

/// Instruments that are really kept, though none is exported within an hour.
fn meters() -> (SdkMeterProvider, Meter) {
    let reader = PeriodicReader::builder(InMemoryMetricExporter::default())
        .with_interval(std::time::Duration::from_secs(3600))
        .build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let meter = provider.meter("bench");
    (provider, meter)
}

/// Spans that the sampler leaves out.
fn unsampled() -> (SdkTracerProvider, SdkTracer) {
    let provider = SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOff).build();
    let tracer = provider.tracer("bench");
    (provider, tracer)
}

fn call_service(signals: &Signals) -> impl Service<ToolCall> + use<> {
    TelemetryLayer::call(signals).layer(call::Leaf)
}

/// Our metrics of one successful call.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn our_metrics() -> Run {
    let (provider, meter) = meters();
    let signals = Signals::builder().without_logs().meter(meter).build().expect("good settings");
    Run::service(Comes::Through, call_service(&signals), call::same()).holding(provider)
}

/// The same two measurements by the SDK's instruments, whose labels are made once but looked up each time.
#[must_use]
pub fn sdk_metrics() -> Run {
    let (provider, meter) = meters();
    let text = |key, value| KeyValue::new(key, value);
    let measured = Arc::new(Measured {
        calls: meter.u64_counter("tool_calls").build(),
        call: [text("tool", "flight_search"), text("status", "success"), text("scope", "session")],
        times: meter.f64_histogram("tool_call_duration_ms").build(),
        time: [text("tool", "flight_search"), text("status", "success")],
    });
    let mut inner = call::Leaf;
    let service = tower::service_fn(move |call: ToolCall| {
        let (measured, since, answer) = (measured.clone(), Instant::now(), inner.call(call));
        async move {
            let outcome = answer.await;
            measured.calls.add(1, &measured.call);
            measured.times.record(since.elapsed().as_secs_f64() * 1e3, &measured.time);
            outcome
        }
    });
    Run::service(Comes::Through, service, call::same()).holding(provider)
}

/// What one writes without us.
#[derive(Debug)]
struct Measured {
    calls: Counter<u64>,
    call: [KeyValue; 3],
    times: Histogram<f64>,
    time: [KeyValue; 2],
}

/// Our span of a call that is not sampled.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn our_span() -> Run {
    let (provider, tracer) = unsampled();
    let signals = Signals::builder().without_logs().tracer(tracer).build().expect("good settings");
    Run::service(Comes::Through, call_service(&signals), call::same()).holding(provider)
}

/// tracing-opentelemetry's span of a call that is not sampled.
#[must_use]
pub fn tracing_span() -> Run {
    let (provider, tracer) = unsampled();
    let layer = tracing_opentelemetry::layer().with_tracer(tracer);
    let dispatch = dispatcher::Dispatch::new(tracing_subscriber::registry().with(layer));
    let mut inner = call::Leaf;
    let spanned = tower::service_fn(move |call: ToolCall| {
        let span = tracing::info_span!(
            "tool_execution",
            "tool.name" = call.parts().tool.label(),
            "gen_ai.operation.name" = "execute_tool",
        );
        inner.call(call).instrument(span)
    });
    Run::service(Comes::Through, spanned, call::same())
        .within(move || dispatcher::set_default(&dispatch))
        .holding(provider)
}
