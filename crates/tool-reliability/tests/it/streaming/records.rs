//! Records of streams: replays chunk by chunk, for later calls, for waiters, and from a store.
use super::support::{all, boxed, call, item, last, outcomes, seen, text};
use futures_util::{StreamExt, stream};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;
use tool_reliability::{
    Streaming, ToolStack,
    idempotency::{RecordState, sqlite::Sqlite, store::Memory},
    streaming::{ChunkLimits, StreamFn, stream_fn},
};
use tower::ServiceExt;
use tr_core::{BoxError, Effect, Json, MatchedOn, ToolCall, ToolOutcome};

type Chunks = stream::BoxStream<'static, Result<String, BoxError>>;

/// Ten chunks of text, one each second; counts its runs.
fn counted() -> (StreamFn<impl Fn(ToolCall) -> Chunks + Clone + Send>, Arc<AtomicU32>) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let tool = stream_fn(move |_: ToolCall| {
        counted.fetch_add(1, Ordering::Relaxed);
        let chunk = async |n: u32| {
            sleep(Duration::from_secs(1)).await;
            Ok(format!("line {n} — \"é\"\n"))
        };
        stream::iter(0..10).then(chunk).boxed()
    });
    (tool, runs)
}

fn pay() -> ToolCall {
    call("pay").effect(Effect::Mutating).idempotency_key("order-42")
}

#[tokio::test(start_paused = true)]
async fn ut_07_a_replay_has_the_same_chunks_byte_for_byte() {
    let (tool, runs) = counted();
    let stack = ToolStack::default();
    let tool = Streaming::new(stack.service(boxed(tool)));
    let first = all(&tool, pay()).await;
    assert_eq!(first.len(), 11);
    let again = outcomes(&tool, pay()).await;
    assert_eq!(again.iter().map(seen).collect::<Vec<_>>(), first);
    for outcome in &again {
        assert_eq!(outcome.replay().unwrap().matched_on, MatchedOn::Completed);
    }
    // A caller that takes no chunks gets the same answer whole.
    let whole = tool_whole(&stack, pay()).await;
    let joined: String =
        first.iter().filter_map(|it| it.2.as_ref()?.parse::<String>().ok()).collect();
    assert_eq!(whole.content().unwrap().parse::<String>().unwrap(), joined);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

async fn tool_whole(stack: &ToolStack, call: ToolCall) -> ToolOutcome {
    let never = tower::service_fn(async |_: ToolCall| {
        Err::<ToolOutcome, _>(BoxError::from("it ran again"))
    });
    stack.service(boxed(never)).oneshot(call).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_chunks_of_the_run_that_it_joined() {
    let (tool, runs) = counted();
    let tool = Streaming::new(ToolStack::default().service(tool));
    let first = tokio::spawn({
        let tool = tool.clone();
        async move { all(&tool, pay()).await }
    });
    sleep(Duration::from_secs(5)).await;
    let second = outcomes(&tool, pay()).await;
    let first = first.await.unwrap();
    assert_eq!(second.iter().map(seen).collect::<Vec<_>>(), first);
    assert_eq!(second[0].replay().unwrap().matched_on, MatchedOn::Inflight);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_runs_to_its_end_if_it_has_a_key() {
    let (tool, runs) = counted();
    let stack = ToolStack::default();
    let tool = Streaming::new(stack.service(boxed(tool)));
    {
        let mut stream = pin!(tool.stream(pay()));
        for _ in 0..3 {
            stream.next().await.unwrap();
        }
    }
    // Nobody reads, and nothing holds it up.
    sleep(Duration::from_secs(60)).await;
    let again = all(&tool, pay()).await;
    assert_eq!((again.len(), runs.load(Ordering::Relaxed)), (11, 1));
    assert_eq!(again[9].2, Some(text("line 9 — \"é\"\n")));
}

#[tokio::test(start_paused = true)]
async fn a_stream_beyond_the_limit_is_done_without_its_answer() {
    let (tool, runs) = counted();
    let stack = ToolStack::default();
    let mut limits = ChunkLimits::default();
    limits.kept_bytes = 100;
    let tool = Streaming::new(stack.service(boxed(tool))).limits(limits);
    let first = outcomes(&tool, pay()).await;
    assert_eq!(first.len(), 11);
    assert!(!first[10].recorded(), "a repeat does not get it");
    let again = all(&tool, pay()).await;
    assert_eq!((again.len(), again[0].3.as_deref()), (1, Some("answer_not_kept")));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    let id = pay().id().unwrap().unwrap();
    assert_eq!(stack.records().record(&id.key).unwrap().state, RecordState::Done);
}

#[tokio::test(start_paused = true)]
async fn another_process_replays_from_the_store() {
    let records = Memory::new();
    let stack =
        || ToolStack::builder().idempotency(|it| it.store(records.clone())).build().unwrap();
    let (tool, runs) = counted();
    let first = all(&Streaming::new(stack().service(boxed(tool.clone()))), pay()).await;
    let again = all(&Streaming::new(stack().service(boxed(tool))), pay()).await;
    assert_eq!((&again, runs.load(Ordering::Relaxed)), (&first, 1));
    let whole = tool_whole(&stack(), pay()).await.content().unwrap().parse::<String>().unwrap();
    assert_eq!(whole.lines().count(), 10);
}

#[tokio::test]
async fn a_file_of_records_replays_values_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.db");
    let stack = async || {
        let store = Sqlite::open(&path).await.unwrap();
        ToolStack::builder().idempotency(|it| it.store(store)).build().unwrap()
    };
    let values = [r#"{ "b" : 1.0,"a":2}"#, "12345678901234567890", r#"["\u0065", null]"#, r#""x""#];
    let tool = stream_fn(move |_: ToolCall| {
        stream::iter(values).map(|it| Ok::<_, BoxError>(Json::from_text(it).unwrap()))
    });
    let first = all(&Streaming::new(stack().await.service(boxed(tool))), pay()).await;
    let never =
        stream_fn(|_: ToolCall| stream::iter([Err::<Json, _>(BoxError::from("it ran again"))]));
    let again = all(&Streaming::new(stack().await.service(boxed(never))), pay()).await;
    let json = |at: usize| Json::from_text(values[at]).unwrap();
    assert_eq!(again, first);
    assert_eq!(
        again,
        [item(0, json(0)), item(1, json(1)), item(2, json(2)), item(3, json(3)), last(4, None)]
    );
}

#[tokio::test(start_paused = true)]
async fn an_outcome_without_the_chunks_that_were_sent_is_not_replayed() {
    let tool = tower::service_fn(async |call: ToolCall| {
        let mut sink = call.chunk_sink();
        sink.send("a").await?;
        let _ = sink.finish(ToolOutcome::default());
        Ok::<_, BoxError>(ToolOutcome::default())
    });
    let stack = ToolStack::default();
    let tool = Streaming::new(stack.service(boxed(tool)));
    assert_eq!(all(&tool, pay()).await, [item(0, text("a")), last(1, None)]);
    let again = all(&tool, pay()).await;
    assert_eq!((again.len(), again[0].3.as_deref()), (1, Some("answer_not_kept")));
}
