//! A success allocates nothing, waited for or not.
use std::time::Duration;
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_retry::{Budget, RetryLayer};
use tr_testkit::alloc;

#[tokio::test(start_paused = true)]
async fn a_success_allocates_nothing() {
    let budget = Budget::builder().build().unwrap();
    let shared = RetryLayer::builder().budget(budget).seed(7).build().unwrap();
    for layer in [RetryLayer::default(), shared] {
        let mut tool = layer.layer(service_fn(async |call: ToolCall| {
            if call.parts().tool.name() == "slow" {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            Ok::<_, BoxError>(ToolOutcome::default())
        }));
        for name in ["slow", "quick", "slow"] {
            let call = ToolCall::new(name, Params::empty_object());
            let made = alloc::count_polls(async { tool.ready().await?.call(call).await }).await;
            let (Ok(_), made) = made else { panic!("{made:?}") };
            assert_eq!(made.count, 0, "{name}");
        }
    }
}
