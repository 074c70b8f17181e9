//! A success allocates nothing, waited for or not.
use std::time::Duration;
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_testkit::alloc;
use tr_timeout::{AttemptTimeoutLayer, DeadlineLayer};

#[tokio::test(start_paused = true)]
async fn a_success_allocates_nothing() {
    let tool = service_fn(async |call: ToolCall| {
        if call.parts().tool.name() == "slow" {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        Ok::<_, BoxError>(ToolOutcome::default())
    });
    let layered = AttemptTimeoutLayer::default().layer(tool);
    let mut layered = DeadlineLayer::new().layer(layered);
    let deadline = tokio::time::Instant::now().into_std() + Duration::from_secs(60);
    for name in ["slow", "quick", "slow"] {
        let call = ToolCall::new(name, Params::empty_object()).deadline(deadline);
        let made = alloc::count_polls(async { layered.ready().await?.call(call).await }).await;
        let (Ok(_), made) = made else { panic!("{made:?}") };
        assert_eq!(made.count, 0, "{name}");
    }
}
