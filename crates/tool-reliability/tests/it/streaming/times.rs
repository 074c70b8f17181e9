//! Timeouts of streams: up to the first chunk, between two, and of the whole call.
use super::support::{all, boxed, call, failed, outcomes};
use futures_util::{StreamExt, stream};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tool_reliability::{
    Streaming, ToolStack,
    config::{Config, Live},
    streaming::stream_fn,
};
use tower::service_fn;
use tr_core::{BoxError, Effect, ToolCall, ToolManifest, ToolOutcome};

const SECOND: Duration = Duration::from_secs(1);

/// A chunk after each of these delays.
fn paced(
    delays: &'static [u64],
) -> impl Fn(ToolCall) -> stream::BoxStream<'static, Result<&'static str, BoxError>> + Clone {
    move |_| {
        let chunk = |seconds: &u64| {
            let after = SECOND * u32::try_from(*seconds).unwrap();
            async move {
                sleep(after).await;
                Ok("a")
            }
        };
        stream::iter(delays).then(chunk).boxed()
    }
}

fn stack() -> ToolStack {
    ToolStack::builder().attempt_timeout(|attempt| attempt.idle(3 * SECOND)).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn ut_07_the_idle_timeout_holds_between_two_chunks() {
    let tool = |delays| Streaming::new(stack().service(boxed(stream_fn(paced(delays)))));
    let mutating = || call("tail").effect(Effect::Mutating);
    // The attempt's 10 s are for the first chunk.
    assert_eq!(all(&tool(&[9, 2, 2, 2, 2]), mutating()).await.len(), 6);
    let since = Instant::now();
    let seen = outcomes(&tool(&[1, 2, 20]), mutating()).await;
    assert_eq!(since.elapsed(), 6 * SECOND);
    let error = seen.last().unwrap().error().unwrap();
    assert_eq!((&*error.code, &*error.message), ("timeout", "Tool timeout: no chunk for 3s"));
    let seen = outcomes(&tool(&[11]), mutating()).await;
    assert_eq!(seen[0].error().unwrap().message.as_ref(), "Tool timeout after 10s");
}

#[tokio::test(start_paused = true)]
async fn the_next_chunk_may_take_as_long_as_an_attempt_by_default_and_by_manifest() {
    let tool =
        Streaming::new(ToolStack::default().service(boxed(stream_fn(paced(&[9, 9, 9, 11])))));
    let seen = outcomes(&tool, call("tail")).await;
    assert_eq!(seen[3].error().unwrap().message.as_ref(), "Tool timeout: no chunk for 10s");

    let mut manifest = ToolManifest::new("tail");
    manifest.idle_timeout = Some(20 * SECOND);
    let tool = Streaming::new(stack().service(boxed(stream_fn(paced(&[9, 19, 21])))));
    let seen = outcomes(&tool, call("tail").manifested(manifest.into())).await;
    assert_eq!(seen[2].error().unwrap().message.as_ref(), "Tool timeout: no chunk for 20s");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_for_a_stream_that_goes_on() {
    let tool = Streaming::new(stack().service(boxed(stream_fn(paced(&[2; 100])))));
    let call = call("tail").deadline((Instant::now() + 15 * SECOND).into_std());
    let seen = all(&tool, call).await;
    assert_eq!(seen.len(), 8);
    assert_eq!(seen[7], failed(7, "timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_is_no_idle_tool() {
    // In one task, and with the call in another than its consumer.
    let tool = Streaming::new(stack().service(boxed(stream_fn(paced(&[1; 40])))));
    let mut slow = pin!(tool.stream(call("tail")));
    let mut chunks = 0;
    while let Some(outcome) = slow.next().await {
        assert!(outcome.error().is_none(), "{outcome:?}");
        chunks += 1;
        sleep(10 * SECOND).await;
    }
    assert_eq!(chunks, 41);

    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let task = tokio::spawn(async move {
        let mut stream = pin!(tool.stream(call("tail")));
        while let Some(outcome) = stream.next().await {
            if sender.send(outcome).await.is_err() {
                break;
            }
        }
    });
    while let Some(outcome) = receiver.recv().await {
        assert!(outcome.error().is_none(), "{outcome:?}");
        sleep(10 * SECOND).await;
    }
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn chunks_from_another_task_keep_the_tool_alive() {
    let tool = service_fn(async |call: ToolCall| {
        let mut sink = call.chunk_sink();
        let sends = tokio::spawn(async move {
            for _ in 0..20 {
                sleep(2 * SECOND).await;
                sink.send("a").await?;
            }
            Ok::<_, BoxError>(sink)
        });
        Ok::<_, BoxError>(sends.await??.finish(ToolOutcome::default()))
    });
    let tool = Streaming::new(stack().service(boxed(tool)));
    let seen = outcomes(&tool, call("tail")).await;
    assert_eq!(seen.len(), 21);
    assert!(seen[20].error().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_idle_timeout_is_configured_for_all_tools_and_for_one() {
    let config = r#"{"idle_timeout_ms": 3000, "tools": {"slow": {"idle_timeout_ms": 20000}}}"#;
    let live = Live::new(Config::from_json(config).unwrap(), |builder| builder).unwrap();
    let tool = Streaming::new(live.stack().service(boxed(stream_fn(paced(&[1, 4, 4])))));
    let chunks = async |name| all(&tool, live.catalog().manifested(call(name))).await.len();
    assert_eq!((chunks("tail").await, chunks("slow").await), (2, 4));
    let changed = Config::from_json(r#"{"idle_timeout_ms": 4000}"#).unwrap();
    assert_eq!(live.reload(changed).unwrap().needs_restart, ["idle_timeout_ms"]);
    let error =
        ToolStack::builder().attempt_timeout(|attempt| attempt.idle(Duration::ZERO)).build();
    assert!(error.unwrap_err().to_string().contains("`idle` is 0ns, must be 1ms to 24h"));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_was_slow_and_leaves_takes_no_time_from_the_tool() {
    for pause in [1, 4, 15] {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        let tool = stream_fn(move |_: ToolCall| {
            counted.fetch_add(1, Ordering::Relaxed);
            // Each chunk takes two waits.
            let chunk = async |n: u32| {
                sleep(SECOND).await;
                sleep(SECOND).await;
                Ok::<_, BoxError>(n.to_string())
            };
            stream::iter(0..5).then(chunk).boxed()
        });
        let tool = Streaming::new(stack().service(boxed(tool)));
        let call = call("tail").effect(Effect::Mutating).idempotency_key("k");
        {
            let mut stream = pin!(tool.stream(call.clone()));
            assert!(stream.next().await.unwrap().error().is_none());
            sleep(pause * SECOND).await;
        }
        sleep(60 * SECOND).await;
        let again = all(&tool, call).await;
        assert!(again.len() == 6 && again[5].3.is_none(), "after {pause} s: {again:?}");
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_while_chunks_wait_for_their_consumer() {
    let tool = service_fn(async |call: ToolCall| {
        let mut sink = call.chunk_sink();
        tokio::spawn(async move { while sink.send("a").await.is_ok() {} });
        std::future::pending::<Result<ToolOutcome, BoxError>>().await
    });
    let tool = Streaming::new(stack().service(boxed(tool)));
    let call = call("tail").deadline((Instant::now() + 15 * SECOND).into_std());
    let mut stream = pin!(tool.stream(call));
    // One chunk a second, so that some always wait.
    for _ in 0..40 {
        let next = stream.next().await.unwrap();
        if next.parts().chunk.unwrap().last {
            assert_eq!(&*next.error().unwrap().code, "timeout");
            return;
        }
        sleep(SECOND).await;
    }
    panic!("the deadline has passed");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_was_dropped_is_no_wait() {
    let tool = Streaming::new(stack().service(boxed(stream_fn(paced(&[1, 2, 2, 2])))));
    let mut stream = pin!(tool.stream(call("tail")));
    assert!(stream.next().await.is_some());
    let begun = tokio::time::timeout(SECOND / 2, stream.next()).await;
    assert!(begun.is_err(), "the next chunk is not there yet");
    sleep(15 * SECOND).await;
    let rest: Vec<_> = stream.map(|outcome| outcome.error().is_none()).collect().await;
    assert_eq!(rest, [true; 4]);
}
