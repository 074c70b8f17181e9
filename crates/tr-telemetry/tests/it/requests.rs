//! Requests of other types.
use crate::common::{Traced, attributes};
use crate::metered::Metered;
use opentelemetry_sdk::trace::Sampler;
use tower::{ServiceExt, layer::Layer, service_fn};
use tr_core::{
    BoxError, Classification, DefaultPolicy, End, KeyRef, Ran, RequestPolicy, ResponsePolicy,
    ToolOutcome, Verdict,
};
use tr_telemetry::{Signals, TelemetryLayer};

fn listening() -> (Metered, Traced, Signals) {
    let (metered, traced) = (Metered::new(), Traced::new(Sampler::AlwaysOn));
    let builder = Signals::builder().meter(metered.meter()).tracer(traced.tracer());
    (metered, traced, builder.build().unwrap())
}

#[tokio::test]
async fn tool_calls_need_no_annotations() {
    let (metered, _, signals) = listening();
    let tool = TelemetryLayer::call(&signals)
        .layer(service_fn(async |_| Ok::<_, BoxError>(ToolOutcome::default())));
    tool.oneshot(crate::common::call("pay")).await.unwrap();
    assert_eq!(metered.read().len(), 3);
}

#[tokio::test]
async fn http_requests_are_told_by_host_and_status() {
    let (metered, traced, signals) = listening();
    let tool = TelemetryLayer::call(&signals).layer(service_fn(async |_: http::Request<&str>| {
        let response = http::Response::builder().status(503).body("down");
        Ok::<_, BoxError>(response.unwrap())
    }));
    let request = http::Request::get("https://api.example.com/x").header("idempotency-key", "k-1");
    tool.oneshot(request.body("").unwrap()).await.unwrap();
    let series = "openclaw_tool_calls{scope=session,status=retriable_error,tool=api.example.com}";
    assert_eq!(metered.read()[series], 1.0);
    let span = &traced.spans()[0];
    assert_eq!(attributes(span)["tool.name"], "api.example.com");
    assert_eq!(attributes(span)["idempotency.key"].len(), 16);
}

struct Ask(&'static str);

#[derive(Debug)]
struct Reply(bool);

impl RequestPolicy<Ask> for DefaultPolicy {
    fn key<'r>(&self, ask: &'r Ask) -> KeyRef<'r> {
        KeyRef::new(ask.0)
    }
}

impl ResponsePolicy<Reply> for DefaultPolicy {
    fn classify<'r>(&self, end: End<'r, Reply>) -> Classification<'r> {
        match end {
            Ok(Reply(true)) => Classification::SUCCESS,
            _ => Classification::new(Verdict::Permanent, Ran::Yes, "no"),
        }
    }
}

#[tokio::test]
async fn ones_own_types_answer_for_themselves() {
    let (metered, traced, signals) = listening();
    let tool = service_fn(async |ask: Ask| Ok::<_, BoxError>(Reply(ask.0 == "oracle")));
    for ask in [Ask("oracle"), Ask("sphinx")] {
        let tool = TelemetryLayer::attempt(&signals).layer(tool);
        TelemetryLayer::call(&signals).layer(tool).oneshot(ask).await.unwrap();
    }
    let metrics = metered.read();
    assert_eq!(metrics["openclaw_tool_calls{scope=session,status=success,tool=oracle}"], 1.0);
    assert_eq!(metrics["openclaw_tool_calls{scope=session,status=error,tool=sphinx}"], 1.0);
    assert_eq!(traced.spans().len(), 4);
}
