//! Behavior of the attempt timeout with answers in chunks.
use super::common::Heard;
use std::{any::Any, time::Duration};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{
    BoxError, KeyRef, Params, Ran, RequestPolicy, ToolCall, ToolOutcome,
    chunks::{ChunkLimits, ChunkReceiver, Chunks, channel},
};
use tr_testkit::laws::Laws;
use tr_timeout::{AttemptTimedOut, AttemptTimeoutBuilder, AttemptTimeoutLayer};

const SECOND: Duration = Duration::from_secs(1);

fn call() -> (ToolCall, ChunkReceiver) {
    let (chunks, receiver) = channel(ChunkLimits::default());
    let mut call = ToolCall::new("tail", Params::empty_object()).request_id("r-1");
    call.parts_mut().chunks = Some(chunks);
    (call, receiver)
}

fn layer(set: fn(AttemptTimeoutBuilder) -> AttemptTimeoutBuilder) -> AttemptTimeoutLayer {
    set(AttemptTimeoutLayer::builder()).build().unwrap()
}

/// How long a tool takes that sends a chunk after each of these seconds and then hangs; and its error.
async fn ended(
    layer: AttemptTimeoutLayer,
    seconds: &'static [u32],
    reads: bool,
) -> Option<(Duration, AttemptTimedOut)> {
    let tool = service_fn(move |call: ToolCall| async move {
        let mut sink = call.chunk_sink();
        for after in seconds {
            sleep(SECOND * *after).await;
            sink.send("a").await?;
        }
        std::future::pending::<Result<ToolOutcome, BoxError>>().await
    });
    let (call, mut receiver) = call();
    let since = Instant::now();
    let reader = async {
        while reads && std::future::poll_fn(|cx| receiver.poll_next(cx)).await.is_some() {}
        std::future::pending::<()>().await;
    };
    let end = tokio::time::timeout(3600 * SECOND, async {
        tokio::select! {
            end = layer.layer(tool).oneshot(call) => end,
            () = reader => unreachable!("it never ends"),
        }
    });
    let error = end.await.ok()?.unwrap_err();
    Some((since.elapsed(), *error.downcast::<AttemptTimedOut>().unwrap()))
}

#[tokio::test(start_paused = true)]
async fn ut_07_each_chunk_has_the_idle_timeout_and_the_first_the_attempt_s() {
    let times = |set| layer(set);
    for (set, seconds, took, idle) in [
        (times(|it| it.after(10 * SECOND).idle(3 * SECOND)), &[9, 2][..], 14, true),
        (times(|it| it.after(10 * SECOND).idle(30 * SECOND)), &[9, 29], 68, true),
        (times(|it| it.after(10 * SECOND)), &[9, 9], 28, true),
        (times(|it| it.only_as_requested().idle(3 * SECOND)), &[100], 103, true),
        (times(|it| it.after(10 * SECOND).idle(3 * SECOND)), &[], 10, false),
        (times(|it| it.after(10 * SECOND).idle(3 * SECOND)), &[11], 10, false),
    ] {
        let (elapsed, error) = ended(set, seconds, true).await.expect("it times out");
        assert_eq!((elapsed, error.is_idle()), (SECOND * took, idle), "{seconds:?}");
        assert_eq!(error.ran(), Ran::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_or_a_reader_a_silent_tool_is_not_ended() {
    let unbounded = AttemptTimeoutLayer::per_request();
    assert!(ended(unbounded, &[1], true).await.is_none());
    // The consumer has not asked for another chunk; the call's deadline bounds it.
    assert!(ended(layer(|it| it.idle(SECOND)), &[1], false).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_observer_hears_how_long_the_chunk_had() {
    let heard = Heard::new();
    let builder = AttemptTimeoutLayer::builder().idle(3 * SECOND).observer(heard.clone());
    ended(builder.build().unwrap(), &[1], true).await.unwrap();
    assert_eq!(heard.lines(), ["tail r-1: 3s, Unknown"]);
}

/// Numbers that are answered in chunks.
#[derive(Clone)]
struct Streamed(u64, Chunks);

#[derive(Clone, Copy)]
struct Policy;

impl RequestPolicy<Streamed> for Policy {
    fn key<'r>(&self, _: &'r Streamed) -> KeyRef<'r> {
        KeyRef::new("square")
    }

    fn chunks<'r, C: Any>(&self, request: &'r Streamed) -> Option<&'r C> {
        (&request.1 as &dyn Any).downcast_ref()
    }
}

#[test]
fn streams_keep_the_laws() {
    let layer = AttemptTimeoutLayer::builder().policy(Policy).build().unwrap();
    let request = |n| Streamed(n, channel(ChunkLimits::default()).0);
    Laws::new(request, |n: &Streamed| n.0 * n.0).check(|tool| layer.layer(tool));
}
