//! Spans in memory, and a tool that tells an observer what layers would tell.
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::{
    InMemorySpanExporter, Sampler, SdkTracer, SdkTracerProvider, SpanData,
};
use std::{collections::BTreeMap, sync::Arc};
use tower::{Service, service_fn};
use tr_core::{
    BoxError, CallInfo, DefaultPolicy, Event, Observer, Params, RequestPolicy, ToolCall,
    ToolOutcome,
};

/// A call that says all that events show.
pub(crate) fn call(tool: &str) -> ToolCall {
    let mut call = ToolCall::new(tool, Params::from_text(r#"{"to":"LIS","seats":2}"#).unwrap())
        .session("s-1")
        .actor("a-1")
        .request_id("r-1")
        .tool_call_id("toolu_1")
        .idempotency_key("order-42");
    call.parts_mut().context.correlation = Some("c-1".into());
    call
}

pub(crate) type Told = fn(&dyn Observer, &CallInfo<'_>);

/// A tool around which layers tell `told` to the observer before it ends.
pub(crate) fn telling(
    observer: Arc<dyn Observer>,
    told: Told,
    end: fn() -> Result<ToolOutcome, BoxError>,
) -> impl Service<ToolCall, Response = ToolOutcome, Error = BoxError, Future: Send> + Clone {
    service_fn(move |call: ToolCall| {
        told(&*observer, &DefaultPolicy.info(&call));
        async move { end() }
    })
}

pub(crate) fn tell(observer: &dyn Observer, call: &CallInfo<'_>, event: Event<'_>) {
    assert!(observer.enabled());
    observer.on_event(call, &event);
}

/// Spans in memory.
pub(crate) struct Traced {
    provider: SdkTracerProvider,
    exporter: InMemorySpanExporter,
}

impl Traced {
    pub(crate) fn new(sampler: Sampler) -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .with_sampler(sampler)
            .build();
        Self { provider, exporter }
    }

    pub(crate) fn tracer(&self) -> SdkTracer {
        self.provider.tracer("test")
    }

    pub(crate) fn spans(&self) -> Vec<SpanData> {
        self.exporter.get_finished_spans().unwrap()
    }
}

/// A span's attributes as text.
pub(crate) fn attributes(span: &SpanData) -> BTreeMap<String, String> {
    span.attributes.iter().map(|kv| (kv.key.to_string(), kv.value.to_string())).collect()
}
