//! The laws of `Service`, with and without listeners.
use crate::common::Traced;
use crate::metered::Metered;
use opentelemetry_sdk::trace::Sampler;
use std::time::Duration;
use tower::{ServiceExt, layer::Layer};
use tr_core::ToolOutcome;
use tr_telemetry::{Signals, TelemetryLayer};
use tr_testkit::{
    calls, drops,
    tool::{Scripted, Step},
};

fn all() -> Vec<Signals> {
    let (metered, traced) = (Metered::new(), Traced::new(Sampler::AlwaysOn));
    let unsampled = Traced::new(Sampler::AlwaysOff);
    [
        Signals::builder(),
        Signals::builder().meter(metered.meter()),
        Signals::builder().tracer(unsampled.tracer()),
        Signals::builder().meter(metered.meter()).tracer(traced.tracer()),
    ]
    .map(|builder| builder.build().unwrap())
    .into()
}

#[test]
fn around_a_call_it_keeps_the_laws() {
    for signals in all() {
        calls::laws().check(|tool| TelemetryLayer::call(&signals).layer(tool));
    }
}

#[test]
fn around_an_attempt_it_keeps_the_laws() {
    for signals in all() {
        calls::laws().check(|tool| TelemetryLayer::attempt(&signals).layer(tool));
    }
}

#[test]
fn both_together_keep_the_laws() {
    for signals in all() {
        calls::laws().check(|tool| {
            TelemetryLayer::call(&signals).layer(TelemetryLayer::attempt(&signals).layer(tool))
        });
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_anywhere_each_call_is_counted_once() {
    let (metered, traced) = (Metered::new(), Traced::new(Sampler::AlwaysOn));
    let signals =
        Signals::builder().meter(metered.meter()).tracer(traced.tracer()).build().unwrap();
    let tool = Scripted::by(|n, _: &tr_core::ToolCall| match n % 3 {
        0 => Step::Hang,
        1 => Step::err("down"),
        _ => Step::after(Duration::from_millis(5), Step::Ok(ToolOutcome::default())),
    });
    let asked = tool.handle();
    let tool = TelemetryLayer::call(&signals).layer(TelemetryLayer::attempt(&signals).layer(tool));
    drops::at_random(7, 600, || tool.clone().oneshot(crate::common::call("pay"))).await;

    let called = asked.attempts().len();
    assert!(called > 300, "{called}");
    let metrics = metered.read();
    let counted = metrics.iter().filter(|(name, _)| name.starts_with("openclaw_tool_calls{"));
    assert_eq!(counted.map(|(_, count)| *count).sum::<f64>(), called as f64);
    let spans = traced.spans();
    for name in ["tool_execution", "tool_attempt"] {
        assert_eq!(spans.iter().filter(|span| span.name == name).count(), called, "{name}");
    }
}
