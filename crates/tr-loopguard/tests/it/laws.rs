//! The contract of tower-service, and what a call costs.
use tower::Layer;
use tr_loopguard::LoopGuardLayer;
use tr_testkit::{
    alloc::count_polls,
    calls::{call, laws},
};

#[test]
fn the_laws_hold() {
    laws().check(|inner| LoopGuardLayer::default().layer(inner));
}

#[test]
fn they_hold_when_it_is_off() {
    laws().check(|inner| LoopGuardLayer::builder().enabled(false).build().unwrap().layer(inner));
}

#[tokio::test(start_paused = true)]
async fn a_success_allocates_nothing() {
    use std::future::{Ready, ready};
    use tower::{ServiceExt, service_fn};
    use tr_core::{BoxError, ToolCall, ToolOutcome};
    fn silent(_: ToolCall) -> Ready<Result<ToolOutcome, BoxError>> {
        ready(Ok(ToolOutcome::default()))
    }
    let guard = LoopGuardLayer::default().layer(service_fn(silent));
    let request = call("read", tr_core::Effect::ReadOnly);
    let run = || guard.clone().oneshot(request.clone());
    run().await.unwrap();
    let (end, allocations) = count_polls(run()).await;
    end.unwrap();
    assert_eq!(allocations.count, 0);
}
