//! Failures of streams: what is retried, and what breakers and the loop guard make of it.
use super::support::{all, boxed, call, failed, item, last, outcomes, text};
use futures_util::{StreamExt, future::BoxFuture, stream};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tool_reliability::{Streaming, ToolStack, streaming::stream_fn};
use tower::{ServiceExt, service_fn};
use tr_core::{
    BoxError, Effect, FailureInfo, KeyRef, NotSent, Ran, ToolCall, ToolError, ToolManifest,
    ToolOutcome, Verdict,
};

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
        let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
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
    let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
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
    let tool = Streaming::new(stack.service(boxed(tool)));
    assert_eq!(all(&tool, call("tail")).await.len(), 2);
    assert_eq!(all(&tool, call("tail")).await.len(), 2);
    let third = all(&tool, call("tail")).await;
    assert_eq!(third, [failed(0, "loop_detected")]);
    let failures = stack.breakers().get(KeyRef::new("tail")).unwrap().counts().consecutive_failures;
    assert_eq!(failures, 2);
}

/// Sends three chunks, then fails as one that did not run. Counts its runs.
fn sends_and_did_not_run(
    end: fn() -> Result<ToolOutcome, BoxError>,
) -> (impl Fn(ToolCall) -> BoxFuture<'static, Result<ToolOutcome, BoxError>> + Clone, Arc<AtomicU32>)
{
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let tool = move |call: ToolCall| -> BoxFuture<'static, Result<ToolOutcome, BoxError>> {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            for chunk in ["a", "b", "c"] {
                call.chunk_sink().send(chunk).await?;
            }
            end()
        })
    };
    (tool, runs)
}

/// Failures that say of themselves that the tool did not run, or of which its manifest says so.
const DID_NOT_RUN: [fn() -> Result<ToolOutcome, BoxError>; 3] = [
    || Err(NotSent::new("no route to the second server").into()),
    || Ok(ToolOutcome::failure(ToolError::new("slow_down", "too many requests"))),
    || {
        let mut error = ToolError::new("busy", "not now");
        error.ran = Ran::No;
        Ok(ToolOutcome::failure(error))
    },
];

fn pay() -> ToolCall {
    let mut manifest = ToolManifest::new("pay");
    manifest.not_run = vec!["slow_down".into()];
    call("pay").effect(Effect::Mutating).manifested(manifest.into())
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_has_sent_chunks_ran_whatever_its_failure_says() {
    for (at, end) in DID_NOT_RUN.into_iter().enumerate() {
        for normalises in [true, false] {
            let stack = || ToolStack::builder().normalise(normalises).build().unwrap();
            let (tool, runs) = sends_and_did_not_run(end);
            let tool = Streaming::new(stack().service(boxed(service_fn(tool))));
            let call = pay().idempotency_key("k");
            let first = outcomes(&tool, call.clone()).await;
            let error = first.last().unwrap().error().unwrap();
            assert!(first.len() == 4 && error.ran != Ran::No, "{at} {normalises}: {error:?}");
            let again = outcomes(&tool, call).await;
            assert!(again.last().unwrap().error().is_some());
            assert_eq!(runs.load(Ordering::Relaxed), 1, "a duplicate ran it: {at} {normalises}");

            // The same for a caller that takes no chunks, with a key and without.
            for call in [pay(), pay().idempotency_key("whole")] {
                let (tool, runs) = sends_and_did_not_run(end);
                let tool = stack().service(boxed(service_fn(tool)));
                let _ = tool.clone().oneshot(call.clone()).await;
                let once = runs.load(Ordering::Relaxed);
                assert_eq!(once, 1, "it was retried: {at} {normalises}");
                if call.parts().idempotency.key.is_some() {
                    let _ = tool.oneshot(call).await;
                    assert_eq!(runs.load(Ordering::Relaxed), 1, "a duplicate ran it: {at}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_is_gathered_from_all_sinks_of_a_run_and_of_no_other() {
    let asked = Arc::new(AtomicU32::new(0));
    let tool = service_fn(move |call: ToolCall| {
        let run = asked.fetch_add(1, Ordering::Relaxed);
        async move {
            call.chunk_sink().send(format!("{run} ")).await?;
            call.clone().chunk_sink().send("done").await?;
            if run == 0 {
                return Err(down());
            }
            Ok::<_, BoxError>(ToolOutcome::default())
        }
    });
    let tool = ToolStack::default().service(boxed(tool));
    // Nobody has the chunks of the first attempt: it is repeated, and they are forgotten.
    let outcome = tool.clone().oneshot(call("tail")).await.unwrap();
    assert_eq!(outcome.content(), Some(&text("1 done")));
    let both = call("tail").effect(Effect::Mutating);
    let (one, two) = tokio::join!(
        tool.clone().oneshot(both.clone().idempotency_key("a")),
        tool.oneshot(both.idempotency_key("b"))
    );
    let contents = [one.unwrap(), two.unwrap()].map(|it| it.content().cloned());
    assert_eq!(contents, [Some(text("2 done")), Some(text("3 done"))]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_looks_like_an_answer_is_found_at_the_end_of_a_stream() {
    for finishes in [true, false] {
        let tool = service_fn(move |call: ToolCall| async move {
            let mut sink = call.chunk_sink();
            sink.send("a").await?;
            let end = ToolOutcome::success(serde_json::json!({"exitCode": 1}));
            Ok::<_, BoxError>(if finishes { sink.finish(end) } else { end })
        });
        let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
        let seen = outcomes(&tool, call("run").effect(Effect::Mutating)).await;
        assert_eq!(seen.len(), 2);
        let error = seen[1].error().expect("it failed");
        assert_eq!(error.ran, Ran::Yes, "finishes: {finishes}");
    }
}
