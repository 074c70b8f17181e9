//! A call that is not recorded costs no allocation, nor does a good answer that is watched.
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_integrity::{AnswerScanner, Format, IntegrityLayer, ModelEnd, Sessions};
use tr_testkit::alloc;

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

#[test]
fn watching_a_good_answer_allocates_nothing() {
    let chunk = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hello, world\"},\"finish_reason\":null}]}\n\n";
    let end =
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let mut scanner = AnswerScanner::new();
    let made = alloc::count(|| {
        (0..1_000).for_each(|_| chunk.chunks(11).for_each(|piece| scanner.push(piece)));
        scanner.push(end);
    });
    assert_eq!((made.count, scanner.end()), (0, ModelEnd::Answered));
}
