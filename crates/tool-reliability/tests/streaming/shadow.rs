//! Streams while the stack is off, or only watches.
use crate::support::{all, call, item, last, text};
use std::time::Duration;
use tool_reliability::{Mode, Rollout, Streaming, ToolStack};
use tower::service_fn;
use tr_core::{BoxError, ToolCall, ToolOutcome};

#[tokio::test(start_paused = true)]
async fn shadow_mode_and_off_leave_a_stream_as_it_is() {
    for mode in [Mode::Off, Mode::Shadow] {
        let stack = ToolStack::builder()
            .rollout(Rollout::new(mode))
            .attempt_timeout(|attempt| attempt.after(Duration::from_secs(1)))
            .build()
            .unwrap();
        let tool = service_fn(async |call: ToolCall| {
            let mut sink = call.chunk_sink();
            // The stack beside it would have given up, and closed the channel.
            tokio::time::sleep(Duration::from_secs(60)).await;
            sink.send("a").await?;
            sink.send("b").await?;
            Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!(2)))
        });
        let tool = Streaming::new(stack.service(tool));
        let two = tr_core::Json::from_text("2").unwrap();
        let expected = [item(0, text("a")), item(1, text("b")), last(2, Some(two))];
        assert_eq!(all(&tool, call("tail").idempotency_key("k")).await, expected, "{mode:?}");
    }
}
