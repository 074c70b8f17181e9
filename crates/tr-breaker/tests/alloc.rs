//! A success allocates nothing.
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, Effect, Params, ToolCall, ToolOutcome};
use tr_testkit::alloc::{self, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[tokio::test]
async fn a_success_allocates_nothing() {
    let layer = BreakerLayer::tool_reliability();
    let service =
        layer.layer(service_fn(|_: ToolCall| async { Ok::<_, BoxError>(ToolOutcome::default()) }));
    let call = ToolCall::new("search", Params::empty_object()).effect(Effect::ReadOnly);
    service.clone().oneshot(call.clone()).await.unwrap();
    for _ in 0..100 {
        let once = async {
            let mut service = service.clone();
            service.ready().await.unwrap().call(call.clone()).await.unwrap()
        };
        let (_, made) = alloc::count_polls(once).await;
        assert_eq!(made.count, 0);
    }
}
