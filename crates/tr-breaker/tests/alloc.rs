//! A success allocates nothing, and a breaker of a quiet tool takes up little.
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

/// Breakers of so many tools, each after a success.
fn bytes_per_breaker(tools: usize) -> u64 {
    let layer = BreakerLayer::builder().capacity(1_000_000).build().unwrap();
    let service =
        layer.layer(service_fn(|_: ToolCall| async { Ok::<_, BoxError>(ToolOutcome::default()) }));
    let call_each = || {
        for tool in 0..tools {
            let call = ToolCall::new(&*format!("tool_{tool:09}"), Params::empty_object());
            let mut success = tokio_test::task::spawn(service.clone().oneshot(call));
            assert!(tokio_test::assert_ready!(success.poll()).is_ok());
        }
    };
    let ((), bytes) = alloc::kept(call_each);
    assert_eq!(layer.registry().all().len(), tools);
    bytes / tools as u64
}

#[test]
fn a_quiet_breaker_takes_up_at_most_256_bytes() {
    // Just after the tables have grown, when they are at their emptiest.
    let tools = 132_000;
    let bytes = bytes_per_breaker(tools);
    println!("{tools} breakers: {bytes} bytes each");
    assert!((64..=256).contains(&bytes), "{tools} breakers: {bytes} bytes each");
}
