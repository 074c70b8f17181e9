//! A call that is not recorded costs no allocation.
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_integrity::{Format, IntegrityLayer, Sessions};
use tr_testkit::alloc::{self, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[tokio::test]
async fn a_call_that_is_not_recorded_allocates_nothing() {
    let tool = service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
    let sessions = Sessions::new(Format::AnthropicMessages);
    let no_session = ToolCall::new("x", Params::empty_object()).tool_call_id("a");
    let recorded = no_session.clone().session("s");
    let with = IntegrityLayer::new(sessions);
    let without = IntegrityLayer::builder().build();
    for (layer, call, is_recorded) in
        [(&with, &no_session, false), (&without, &recorded, false), (&with, &recorded, true)]
    {
        let mut layered = layer.layer(tool);
        let call = call.clone();
        let made = alloc::count_polls(async { layered.ready().await?.call(call).await }).await;
        let (Ok(_), made) = made else { panic!("{made:?}") };
        assert_eq!(made.count > 0, is_recorded, "{made:?}");
    }
}
