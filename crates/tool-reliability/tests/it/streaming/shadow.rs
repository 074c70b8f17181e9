//! Streams while the stack is off, or only watches.
use super::support::{all, boxed, call, failed, item, last, text};
use std::time::Duration;
use tool_reliability::{Mode, Rollout, Streaming, ToolStack, idempotency::store::Memory};
use tower::service_fn;
use tr_core::{BoxError, Effect, ToolCall, ToolOutcome};

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
        let tool = Streaming::new(stack.service(boxed(tool)));
        let two = tr_core::Json::from_text("2").unwrap();
        let expected = [item(0, text("a")), item(1, text("b")), last(2, Some(two))];
        assert_eq!(all(&tool, call("tail").idempotency_key("k")).await, expected, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_of_shadow_mode_replays_no_part_of_an_answer() {
    for finishes in [true, false] {
        let records = Memory::new();
        let stack = |mode| {
            let stack = ToolStack::builder().rollout(Rollout::new(mode));
            stack.idempotency(|it| it.store(records.clone())).build().unwrap()
        };
        let tool = service_fn(move |call: ToolCall| async move {
            let mut sink = call.chunk_sink();
            sink.send("a").await?;
            let end = ToolOutcome::success(serde_json::json!(2));
            Ok::<_, BoxError>(if finishes { sink.finish(end) } else { end })
        });
        let pay = call("pay").effect(Effect::Mutating).idempotency_key("k");
        let first =
            all(&Streaming::new(stack(Mode::Shadow).service(boxed(tool))), pay.clone()).await;
        assert_eq!(first.len(), 2);
        let never =
            service_fn(async |_: ToolCall| Err::<ToolOutcome, _>(BoxError::from("it ran again")));
        let again = all(&Streaming::new(stack(Mode::Enforce).service(boxed(never))), pay).await;
        let expected = if finishes { first } else { vec![failed(0, "answer_not_kept")] };
        assert_eq!(again, expected, "finishes: {finishes}");
    }
}
