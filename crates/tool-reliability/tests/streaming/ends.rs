//! Failures of streams: what is retried, and what breakers and the loop guard make of it.
use crate::support::{all, call, failed, item, last, text};
use futures_util::{StreamExt, stream};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tool_reliability::{Streaming, ToolStack, streaming::stream_fn};
use tower::service_fn;
use tr_core::{BoxError, FailureInfo, KeyRef, Ran, ToolCall, ToolOutcome, Verdict};

fn down() -> BoxError {
    FailureInfo::new("http_503", Ran::No, Verdict::TRANSIENT).into()
}

#[tokio::test(start_paused = true)]
async fn ut_07_a_stream_is_retried_up_to_its_first_chunk_and_not_after() {
    for (chunks, runs) in [(0, 4), (1, 1), (3, 1)] {
        let asked = Arc::new(AtomicU32::new(0));
        let counted = asked.clone();
        let tool = stream_fn(move |_: ToolCall| {
            counted.fetch_add(1, Ordering::Relaxed);
            let sent = stream::iter(["a"; 3]).take(chunks).map(Ok::<_, BoxError>);
            sent.chain(stream::once(async { Err(down()) }))
        });
        let tool = Streaming::new(ToolStack::default().service(tool));
        let seen = all(&tool, call("tail")).await;
        assert_eq!(asked.load(Ordering::Relaxed), runs, "after {chunks} chunks");
        let code = if chunks == 0 { "retry_exhausted" } else { "http_503" };
        assert_eq!(seen.last().unwrap(), &failed(chunks as u64, code));
        assert_eq!(seen.len(), chunks + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_over_adds_nothing_to_the_next() {
    let asked = Arc::new(AtomicU32::new(0));
    let tool = service_fn(move |call: ToolCall| {
        let attempt = asked.fetch_add(1, Ordering::Relaxed);
        async move {
            let mut sink = call.chunk_sink();
            if attempt == 0 {
                // It goes on sending after its attempt has failed.
                tokio::spawn(async move {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    while sink.send("zombie").await.is_ok() {}
                });
                return Err(down());
            }
            for chunk in ["a", "b"] {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                sink.send(chunk).await?;
            }
            Ok(sink.finish(ToolOutcome::default()))
        }
    });
    let tool = Streaming::new(ToolStack::default().service(tool));
    let seen = all(&tool, call("tail")).await;
    assert_eq!(seen, [item(0, text("a")), item(1, text("b")), last(2, None)]);
}

#[tokio::test(start_paused = true)]
async fn breaker_and_loop_guard_judge_a_stream_by_its_end() {
    let stack = ToolStack::default();
    let tool = stream_fn(|_: ToolCall| {
        let sent = stream::iter(["a"]).map(Ok::<_, BoxError>);
        sent.chain(stream::once(async {
            Err(FailureInfo::new("http_503", Ran::Yes, Verdict::TRANSIENT).into())
        }))
    });
    let tool = Streaming::new(stack.service(tool));
    assert_eq!(all(&tool, call("tail")).await.len(), 2);
    assert_eq!(all(&tool, call("tail")).await.len(), 2);
    let third = all(&tool, call("tail")).await;
    assert_eq!(third, [failed(0, "loop_detected")]);
    let failures = stack.breakers().get(KeyRef::new("tail")).unwrap().counts().consecutive_failures;
    assert_eq!(failures, 2);
}
