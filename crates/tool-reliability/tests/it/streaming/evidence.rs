//! A tool that has sent chunks has run, and is judged by its end, whoever reads it.
use super::support::{all, boxed, call, failed, item, last, outcomes, text};
use futures_util::{FutureExt, StreamExt, stream};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tool_reliability::{Mode, Rollout, Streaming, ToolStack, streaming::stream_fn};
use tower::{ServiceExt, service_fn};
use tr_core::{
    BoxError, Effect, NotSent, Ran, ToolCall, ToolManifest, ToolOutcome, classify::error,
};

const SECOND: Duration = Duration::from_secs(1);

fn pay() -> ToolCall {
    call("pay").effect(Effect::Mutating).idempotency_key("order-42")
}

/// Sends a chunk, and fails with the evidence that its second request was not sent.
async fn half_paid(call: ToolCall, runs: Arc<AtomicU32>) -> Result<ToolOutcome, BoxError> {
    runs.fetch_add(1, Ordering::Relaxed);
    let mut sink = call.chunk_sink();
    sink.send("paid the first half\n").await?;
    Err(NotSent::new(BoxError::from("connection refused")).into())
}

#[tokio::test(start_paused = true)]
async fn a_mutating_tool_that_sent_a_chunk_never_runs_again() {
    for (streams, normalises) in [(true, true), (false, true), (true, false), (false, false)] {
        let stack = ToolStack::builder().normalise(normalises).build().unwrap();
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        let tool = stack.service(boxed(service_fn(move |call| half_paid(call, counted.clone()))));
        for _ in 0..2 {
            let ran = if streams {
                let outcomes = outcomes(&Streaming::new(tool.clone()), pay()).await;
                outcomes.last().unwrap().error().unwrap().ran
            } else {
                error(&*tool.clone().oneshot(pay()).await.unwrap_err()).end.ran
            };
            assert_eq!(ran, Ran::Unknown, "streams: {streams}, normalises: {normalises}");
        }
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn neither_does_one_whose_manifest_has_a_code_for_not_run() {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let tool = stream_fn(move |_: ToolCall| {
        counted.fetch_add(1, Ordering::Relaxed);
        let error = tr_core::ToolError::new("busy", "try later");
        stream::iter([Ok("paid the first half\n"), Err(BoxError::from(error))])
    });
    let mut manifest = ToolManifest::new("pay");
    manifest.classification = vec![("busy".into(), tr_core::Verdict::TRANSIENT)];
    manifest.not_run = vec!["busy".into()];
    let manifest = Arc::new(manifest);
    let tool = ToolStack::default().service(boxed(tool));
    for _ in 0..2 {
        tool.clone().oneshot(pay().manifested(manifest.clone())).await.unwrap_err();
    }
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_is_whole_though_the_tool_forgets_to_finish() {
    let tool = service_fn(async |call: ToolCall| {
        call.chunk_sink().send("a").await?;
        sleep(SECOND).await;
        call.chunk_sink().send("b").await?;
        Ok::<_, BoxError>(ToolOutcome::default())
    });
    let tool = ToolStack::default().service(boxed(tool));
    // Clones of one call are runs of their own.
    let call = call("tail").dedupe(tr_core::DedupeMode::Disabled);
    let both = [call.clone(), call].map(|call| tool.clone().oneshot(call));
    for outcome in futures_util::future::join_all(both).await {
        assert_eq!(outcome.unwrap().content(), Some(&text("ab")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_chunk_that_hides_a_failure_is_one() {
    for finishes in [true, false] {
        let tool = service_fn(move |call: ToolCall| async move {
            let mut sink = call.chunk_sink();
            sink.send("compiling\n").await?;
            let outcome = ToolOutcome::success(serde_json::json!({"exitCode": 1}));
            Ok::<_, BoxError>(if finishes { sink.finish(outcome) } else { outcome })
        });
        let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
        let seen = all(&tool, call("build")).await;
        assert_eq!(seen[0], item(0, text("compiling\n")));
        assert_eq!((seen[1].0, seen[1].1, seen[1].3.as_deref()), (1, true, Some("nonzero_exit")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_of_shadow_mode_without_the_chunks_is_no_answer() {
    let stack = ToolStack::builder().rollout(Rollout::new(Mode::Shadow)).build().unwrap();
    let tool = service_fn(async |call: ToolCall| {
        call.chunk_sink().send("a").await?;
        Ok::<_, BoxError>(ToolOutcome::default())
    });
    let tool = Streaming::new(stack.service(boxed(tool)));
    assert_eq!(all(&tool, pay()).await, [item(0, text("a")), last(1, None)]);
    stack.kill_switch().set_rollout(Rollout::default());
    assert_eq!(all(&tool, pay()).await, [failed(0, "answer_not_kept")]);
}

/// Two polls for each chunk.
fn two_polls(
    chunks: u32,
    every: Duration,
) -> impl Fn(ToolCall) -> stream::BoxStream<'static, Result<String, BoxError>> + Clone {
    move |_| {
        let chunk = move |n: u32| async move {
            tokio::task::yield_now().await;
            sleep(every).await;
            Ok(n.to_string())
        };
        stream::iter(0..chunks).then(chunk).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_run_of_a_slow_consumer_that_left_is_not_idle() {
    let stack = ToolStack::builder().attempt_timeout(|it| it.idle(10 * SECOND)).build().unwrap();
    let tool = Streaming::new(stack.service(boxed(stream_fn(two_polls(5, SECOND)))));
    {
        let mut answer = pin!(tool.stream(pay()));
        assert!(answer.next().await.is_some());
        assert!(answer.next().now_or_never().is_none(), "it waits for the next");
        sleep(15 * SECOND).await;
    }
    sleep(30 * SECOND).await;
    let again = all(&tool, pay()).await;
    assert_eq!((again.len(), again.last()), (6, Some(&last(5, None))));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_stopped_waiting_charges_the_tool_nothing() {
    let stack = ToolStack::builder().attempt_timeout(|it| it.idle(3 * SECOND)).build().unwrap();
    let tool = Streaming::new(stack.service(boxed(stream_fn(two_polls(4, SECOND)))));
    let mut answer = pin!(tool.stream(call("tail")));
    let mut seen = 0;
    loop {
        // It gives up at once, and does something else for long.
        match answer.next().now_or_never() {
            // Up to the first chunk it is the attempt's time that counts.
            None => sleep(if seen == 0 { SECOND } else { 20 * SECOND }).await,
            Some(None) => break,
            Some(Some(outcome)) => {
                assert!(outcome.error().is_none(), "{outcome:?}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 5);
}

/// A run of a tool that notes when it is dropped.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_the_tool_while_chunks_wait() {
    let ended = Arc::new(AtomicBool::new(false));
    let noted = ended.clone();
    let tool = stream_fn(move |_: ToolCall| {
        let running = Running(noted.clone());
        stream::iter(0..).map(move |n: u32| {
            let _running = &running;
            Ok::<_, BoxError>(n.to_string())
        })
    });
    let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
    let since = Instant::now();
    let call = call("tail").deadline((since + 10 * SECOND).into_std());
    let mut answer = pin!(tool.stream(call));
    let mut end = None;
    while let Some(outcome) = answer.next().await {
        end = outcome.error().map(|error| error.code.clone());
        sleep(2 * SECOND).await;
        let (has_ended, elapsed) = (ended.load(Ordering::Relaxed), since.elapsed());
        assert!(elapsed == 12 * SECOND || has_ended == (elapsed > 12 * SECOND), "{elapsed:?}");
    }
    assert_eq!(end.as_deref(), Some("timeout"));
}
