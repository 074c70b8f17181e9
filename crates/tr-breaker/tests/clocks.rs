//! Clocks of tests that were paused and put forward: a process has many of them, and one origin of
//! times in words. Alone in its process: the first time that is read is that origin.
use std::time::Duration;
use tokio::{runtime::Builder, time::advance};
use tower::{Layer, ServiceExt, service_fn};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};

/// Succeeds so many times at once, and says what was counted.
async fn successes(calls: u32) -> u32 {
    let layer = BreakerLayer::default();
    let tool = service_fn(|_: ToolCall| async { Ok::<_, BoxError>(ToolOutcome::default()) });
    let call = ToolCall::new("search", Params::empty_object());
    let breaker = layer.registry().breaker(call.parts().tool.key());
    let service = layer.layer(tool);
    for _ in 0..calls {
        service.clone().oneshot(call.clone()).await.unwrap();
    }
    breaker.counts().calls
}

#[test]
fn a_clock_far_in_the_future_does_not_take_the_others_with_it() {
    for ahead in [10, 0] {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            advance(Duration::from_secs(ahead * 24 * 60 * 60)).await;
            assert_eq!(successes(3).await, 3, "{ahead} days ahead");
        });
    }
}
