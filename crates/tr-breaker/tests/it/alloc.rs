//! What breakers allocate: nothing on a success, little for a quiet tool, nothing that stays.
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, Effect, Params, ToolCall, ToolOutcome};
use tr_testkit::{alloc, rounds};

#[tokio::test]
async fn a_success_allocates_nothing() {
    let layer = BreakerLayer::default();
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
fn bytes_per_breaker(tools: u64) -> u64 {
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
    assert_eq!(layer.registry().all().len() as u64, tools);
    bytes / tools
}

#[test]
fn a_million_quiet_breakers_take_up_at_most_256_bytes_each() {
    // Also just after the tables have grown, when they are at their emptiest.
    for tools in [100_000, rounds(132_000, 1_000_000)] {
        let bytes = bytes_per_breaker(tools);
        println!("{tools} breakers: {bytes} bytes each");
        assert!((64..=256).contains(&bytes), "{tools} breakers: {bytes} bytes each");
    }
}

/// Makes a layer, calls two tools through it, one of which fails, and drops all of it.
fn come_and_go(tool: &str) {
    let layer = BreakerLayer::builder().capacity(8).consecutive_failures(1).build().unwrap();
    let service = layer.layer(service_fn(|call: ToolCall| async move {
        match call.parts().tool.name() {
            "fails" => Err(BoxError::from("down")),
            _ => Ok(ToolOutcome::default()),
        }
    }));
    for tool in [tool, "fails", "fails"] {
        let call = ToolCall::new(tool, Params::empty_object());
        let mut call = tokio_test::task::spawn(service.clone().oneshot(call));
        let is_ok = tokio_test::assert_ready!(call.poll()).is_ok();
        assert_eq!(is_ok, tool != "fails");
    }
}

#[test]
fn making_and_dropping_layers_leaks_nothing() {
    // What serves a layer's breakers serves those of the next.
    (0..100).for_each(|n| come_and_go(&format!("tool {n}")));
    let ((), bytes) =
        alloc::kept(|| (0..100_000).for_each(|n| come_and_go(&format!("tool {n:06}"))));
    assert!(bytes < 64 * 1024, "{bytes} bytes are left of 100,000 layers");
}
