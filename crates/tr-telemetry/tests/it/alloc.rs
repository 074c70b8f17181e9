//! What is not listened to costs nothing, and counting costs no allocation.
use crate::metered::Metered;
use tower::{Service, ServiceExt, layer::Layer, service_fn};
use tr_core::{BoxError, DefaultPolicy, Event, Params, RequestPolicy, ToolCall, ToolOutcome};
use tr_telemetry::{Signals, TelemetryLayer};
use tr_testkit::alloc;

fn call() -> ToolCall {
    ToolCall::new("pay", Params::empty_object()).session("s-1").idempotency_key("order-42")
}

async fn count(signals: &Signals, warm_up: usize) -> u64 {
    let tool = service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
    let tool = TelemetryLayer::attempt(signals).layer(tool);
    let mut tool = TelemetryLayer::call(signals).layer(tool);
    for _ in 0..warm_up {
        tool.ready().await.unwrap().call(call()).await.unwrap();
    }
    let call = call();
    let counted = alloc::count_polls(async { tool.clone().ready().await?.call(call).await }).await;
    counted.0.unwrap();
    counted.1.count
}

#[tokio::test]
async fn without_listeners_nothing_is_done() {
    let signals = Signals::builder().build().unwrap();
    assert_eq!(count(&signals, 0).await, 0);
    assert_eq!(count(&Signals::builder().without_logs().build().unwrap(), 0).await, 0);

    let observer = signals.observer();
    assert!(!observer.enabled());
    let call = call();
    let told = alloc::count(|| observer.on_event(&DefaultPolicy.info(&call), &Event::KeyConflict));
    assert_eq!(told.count, 0);
}

#[tokio::test]
async fn without_listeners_no_clock_is_read() {
    // Outside a paused runtime there is no clock to pause: the future's own state tells.
    let signals = Signals::builder().build().unwrap();
    let tool = service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
    let mut tool = TelemetryLayer::call(&signals).layer(tool);
    let running = tool.ready().await.unwrap().call(call());
    assert!(format!("{running:?}").contains("watch: None"), "{running:?}");
    running.await.unwrap();
}

// Without the feature `bound` the SDK sorts the labels of each measurement anew, in a copy.
#[cfg(feature = "bound")]
#[tokio::test]
async fn a_counted_success_allocates_nothing() {
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).build().unwrap();
    assert_eq!(count(&signals, 1).await, 0);
    assert_eq!(metered.read()["openclaw_tool_calls{scope=session,status=success,tool=pay}"], 2.0);
}

#[tokio::test]
async fn a_success_is_counted_for_each_call() {
    let metered = Metered::new();
    let signals = Signals::builder().meter(metered.meter()).build().unwrap();
    count(&signals, 4).await;
    assert_eq!(metered.read()["openclaw_tool_calls{scope=session,status=success,tool=pay}"], 5.0);
}
