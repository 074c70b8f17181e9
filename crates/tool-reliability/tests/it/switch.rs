//! The kill switch and the readiness of what it switches between.
use std::{convert::Infallible, future::poll_fn, time::Duration};
use tokio::time::timeout;
use tool_reliability::{Guarded, KillSwitch, ToolStack};
use tower::{
    Service, ServiceExt,
    limit::{ConcurrencyLimit, GlobalConcurrencyLimitLayer},
    service_fn,
};
use tower_layer::Layer;
use tr_core::{Params, ToolCall, ToolOutcome};

type Answer = std::future::Ready<Result<ToolOutcome, Infallible>>;
type Limited = ConcurrencyLimit<tower::util::ServiceFn<fn(ToolCall) -> Answer>>;

fn answer(_: ToolCall) -> Answer {
    std::future::ready(Ok(ToolOutcome::default()))
}

/// A tool that runs `calls` at once, guarded; and its bare form, which shares the limit.
fn limited(calls: usize, on: bool) -> (Guarded<Limited>, Limited, KillSwitch) {
    let switch = KillSwitch::new(on);
    let stack = ToolStack::builder().kill_switch(switch.clone()).build().unwrap();
    let bare =
        GlobalConcurrencyLimitLayer::new(calls).layer(service_fn(answer as fn(ToolCall) -> Answer));
    (stack.service(bare.clone()), bare, switch)
}

fn call() -> ToolCall {
    ToolCall::new("t", Params::empty_object())
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_turns_between_readiness_and_call_blocks_nobody() {
    for on in [true, false] {
        let (mut tool, _, switch) = limited(1, on);
        let ready = tool.ready().await.unwrap();
        switch.set(!on);
        let answer = timeout(Duration::from_secs(60), ready.call(call())).await;
        assert!(answer.expect("answered").is_ok(), "was on: {on}");
        let again = timeout(Duration::from_secs(60), tool.ready().await.unwrap().call(call()));
        assert!(again.await.expect("answered again").is_ok(), "was on: {on}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_turns_between_two_polls_holds_one_reservation() {
    for on in [true, false] {
        let (mut tool, bare, switch) = limited(2, on);
        tool.ready().await.unwrap();
        switch.set(!on);
        tool.ready().await.unwrap();
        let other = timeout(Duration::from_secs(60), bare.oneshot(call())).await;
        assert!(other.is_ok(), "was on: {on}");
    }
}

#[tokio::test(start_paused = true)]
async fn off_it_reserves_once_and_passes_back_pressure_on() {
    let (mut tool, mut bare, _) = limited(2, false);
    tool.ready().await.unwrap();
    // The second place is free.
    timeout(Duration::from_secs(60), bare.ready()).await.expect("free").unwrap();
    let mut third = tool.clone();
    let pending = poll_fn(|cx| std::task::Poll::Ready(third.poll_ready(cx).is_pending())).await;
    assert!(pending, "the bare tool is full, and so is what stands for it");
    drop(tool);
    timeout(Duration::from_secs(60), third.ready()).await.expect("released").unwrap();
}
