//! Answers in chunks, through the whole stack.
mod ends;
mod evidence;
mod records;
mod shadow;
mod support;
mod telemetry;
mod times;

use futures_util::{StreamExt, stream};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
};
use support::{all, boxed, call, item, last, text};
use tool_reliability::{
    Streaming, ToolStack,
    streaming::{ChunkLimits, stream_fn},
};
use tower::{ServiceExt, service_fn, util::MapErr};
use tr_core::{BoxError, Effect, Json, Ran, ToolCall, ToolOutcome};
use tr_testkit::calls;

#[tokio::test(start_paused = true)]
async fn ut_07_chunks_come_in_order_and_the_last_one_is_marked() {
    let tool =
        stream_fn(|_: ToolCall| stream::iter(["one ", "two ", "three"]).map(Ok::<_, BoxError>));
    let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
    let seen = all(&tool, call("tail")).await;
    assert_eq!(
        seen,
        [item(0, text("one ")), item(1, text("two ")), item(2, text("three")), last(3, None)]
    );
}

#[tokio::test(start_paused = true)]
async fn ut_07_a_stream_writes_the_envelopes_of_utee() {
    use tr_wire::utee::{ResponseStatus, ToolResponse};
    let tool = stream_fn(|_: ToolCall| {
        stream::iter([Ok::<_, BoxError>("one"), Err("disk failure".into())])
    });
    let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
    let call = call("tail").request_id("r-1");
    let mut stream = pin!(tool.stream(call.clone()));
    let mut seen = Vec::new();
    while let Some(outcome) = stream.next().await {
        let response = ToolResponse::of(&call, Ok(&outcome), std::time::Duration::ZERO);
        seen.push((
            response.status,
            response.chunk_index,
            response.is_streaming,
            response.final_chunk,
        ));
    }
    assert_eq!(
        seen,
        [
            (ResponseStatus::Partial, Some(0), Some(true), Some(false)),
            (ResponseStatus::Error, Some(1), Some(false), Some(true)),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_stream_answers_with_one_chunk() {
    let tool = service_fn(async |call: ToolCall| {
        assert!(call.parts().hints.prefer_streaming);
        Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!({"n": 1})))
    });
    let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
    let json = Json::from_text(r#"{"n":1}"#).unwrap();
    assert_eq!(all(&tool, call("count")).await, [last(0, Some(json))]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_takes_no_chunks_gets_the_whole_answer() {
    let tool = stream_fn(|_: ToolCall| stream::iter(["a", "b"]).map(Ok::<_, BoxError>));
    let tool = ToolStack::default().service(boxed(tool));
    let outcome = tool.oneshot(call("tail")).await.unwrap();
    assert_eq!((outcome.content(), outcome.parts().chunk), (Some(&text("ab")), None));

    let read = Arc::new(AtomicUsize::new(0));
    let counted = read.clone();
    let tool = stream_fn(move |_: ToolCall| {
        let read = counted.clone();
        stream::iter(0..100).map(move |n| {
            read.fetch_add(1, Ordering::Relaxed);
            Ok::<_, BoxError>(format!("{n:010}"))
        })
    });
    let tool = ToolStack::default().service(boxed(tool.gather_up_to(500)));
    let outcome = tool.oneshot(call("tail").effect(Effect::Mutating)).await.unwrap();
    let error = outcome.error().unwrap();
    assert_eq!((&*error.code, error.ran), ("answer_too_large", Ran::Yes));
    assert_eq!(read.load(Ordering::Relaxed), 100, "it may change something: it ran to its end");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_forgets_to_finish_streams_all_the_same() {
    let tool = service_fn(async |call: ToolCall| {
        let mut sink = call.chunk_sink();
        sink.send("a").await?;
        sink.send(serde_json::json!({"b": 1})).await?;
        Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!("total: 2")))
    });
    let tool = Streaming::new(ToolStack::default().service(boxed(tool)));
    let call = call("tail").idempotency_key("k");
    let first = all(&tool, call.clone()).await;
    let b = Json::from_text(r#"{"b":1}"#).unwrap();
    assert_eq!(first, [item(0, text("a")), item(1, b), last(2, Some(text("total: 2")))]);
    assert_eq!(all(&tool, call).await, first, "the replay has its last chunk, too");
}

#[tokio::test(start_paused = true)]
async fn ut_07_a_slow_consumer_slows_the_tool() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let tool = stream_fn(move |_: ToolCall| {
        let made = counted.clone();
        stream::iter(0..1000).map(move |n| {
            made.fetch_add(1, Ordering::Relaxed);
            Ok::<_, BoxError>(Json::from_value(&n).unwrap())
        })
    });
    let mut limits = ChunkLimits::default();
    limits.buffered = 4;
    let tool = Streaming::new(ToolStack::default().service(boxed(tool))).limits(limits);
    let mut stream = pin!(tool.stream(call("tail")));
    for taken in 1..=1000 {
        assert!(stream.next().await.is_some());
        let made = made.load(Ordering::Relaxed);
        assert!((taken..=taken + 4).contains(&made), "{made} made, {taken} taken");
    }
    assert!(stream.next().await.unwrap().parts().chunk.unwrap().last);
    assert!(stream.next().await.is_none() && stream.next().await.is_none());
}

/// A service that answers with the last outcome of the stream: it keeps the laws of services.
#[test]
fn a_stream_keeps_the_laws_of_services() {
    calls::laws().maps_errors().check(|inner| {
        let streaming = Streaming::new(MapErr::new(inner, BoxError::from));
        service_fn(move |call: ToolCall| {
            let stream = streaming.stream(call);
            async move {
                let mut outcomes = pin!(stream);
                let mut last = None;
                while let Some(outcome) = outcomes.next().await {
                    last = Some(outcome);
                }
                let mut outcome = last.expect("one is the last");
                outcome.parts_mut().chunk = None;
                match outcome.error().cloned() {
                    Some(error) => Err(BoxError::from(error)),
                    None => Ok(outcome),
                }
            }
        })
    });
}

/// At every poll of a stream, its consumer may leave: without a key, the tool is dropped with it.
#[test]
fn a_stream_that_is_dropped_drops_its_call_wherever_it_is() {
    for polls in 0..12 {
        let alive = Arc::new(());
        let held = Arc::downgrade(&alive);
        let tool = stream_fn(move |_: ToolCall| {
            let alive = alive.clone();
            stream::iter(0..4).then(move |n| {
                let alive = alive.clone();
                async move {
                    tokio::task::yield_now().await;
                    drop(alive);
                    Ok::<_, BoxError>(Json::from_value(&n).unwrap())
                }
            })
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let stack = ToolStack::builder().idempotency(|records| {
            records.derived_keys(tool_reliability::idempotency::DerivedKeys::Off)
        });
        let tool = Streaming::new(stack.build().unwrap().service(boxed(tool)));
        let mut stream = Box::pin(tool.stream(call("tail")));
        for _ in 0..polls {
            let mut cx = Context::from_waker(Waker::noop());
            let _ = stream.as_mut().poll_next_unpin(&mut cx);
        }
        drop((stream, tool));
        drop(runtime);
        assert_eq!(held.strong_count(), 0, "after {polls} polls");
    }
}
