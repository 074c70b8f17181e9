//! Answers in chunks.
use super::*;
use futures_util::{StreamExt as _, stream};
use std::pin::pin;
use tool_reliability::{BoxError, envelopes::Answers, streaming::stream_fn};
use tower::Service;
use tr_core::call::CallContext;
use tr_testkit::calls::answers;

async fn all<S, F, E>(answers: Answers<S, F>) -> Vec<Value>
where
    S: Service<ToolCall, Response = ToolOutcome, Error = E, Future = F> + Clone,
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    answers.map(|answer| answer.to_json().parse().unwrap()).collect().await
}

fn prefers(more: &Value) -> EnvelopeRequest {
    let mut members = json!({"hints": {"preferStreaming": true}});
    members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    utee("tail", members).into()
}

fn chunk(said: &Value) -> (u64, bool, &str, &Value) {
    let index = said["chunkIndex"].as_u64().unwrap();
    (
        index,
        said["finalChunk"].as_bool().unwrap(),
        said["status"].as_str().unwrap(),
        &said["result"],
    )
}

#[tokio::test(start_paused = true)]
async fn ut_07_a_tool_that_streams_is_answered_in_chunks() {
    let tail = stream_fn(|_: ToolCall| stream::iter(["one", "two"]).map(Ok::<_, BoxError>));
    let tools = Envelopes::new(ToolStack::default().service(tail));
    let request = || prefers(&json!({"idempotencyKey": "k"}));
    for from_cache in [false, true] {
        let answers = tools.answers(request());
        assert!(answers.is_streaming());
        let said = all(answers).await;
        let chunks: Vec<_> = said.iter().map(chunk).collect();
        let (one, two) = (json!("one"), json!("two"));
        let wanted = [
            (0, false, "partial", &one),
            (1, false, "partial", &two),
            (2, true, "success", &Value::Null),
        ];
        assert_eq!(chunks, wanted, "from the record: {from_cache}");
        assert!(said.iter().all(|it| it["requestId"] == "r" && it["fromCache"] == from_cache));
        assert_eq!(said[2]["isStreaming"], false);
        assert_eq!(said[2]["attempts"], u32::from(!from_cache));
    }
    // Who does not ask for chunks gets one answer with all of them.
    for request in
        [utee("tail", json!({})), bs_tim_5("tail", &json!({"_utee": {"preferStreaming": true}}))]
    {
        let answers = tools.answers(request.into());
        assert!(!answers.is_streaming());
        let said = all(answers).await;
        assert_eq!((said.len(), &said[0]["status"]), (1, &json!("success")));
        assert!(said[0].get("chunkIndex").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn ut_07_a_tool_that_does_not_stream_gives_one_chunk_and_faults_none() {
    let bench = Bench::new([answers("ok")]);
    let said = all(bench.tools.answers(prefers(&json!({})))).await;
    assert_eq!(said.iter().map(chunk).collect::<Vec<_>>(), [(0, true, "success", &json!("ok"))]);
    let said = all(bench.tools.answers(prefers(&json!({"timeout": 0})))).await;
    assert_eq!((said.len(), &said[0]["error"]["code"]), (1, &json!("invalid_envelope")));
    assert_eq!(bench.handle.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn ut_07_a_stream_that_breaks_says_so_in_its_last_chunk() {
    let breaks =
        stream_fn(|_: ToolCall| stream::iter([Ok("one"), Err(BoxError::from("the disk is gone"))]));
    let tools = Envelopes::new(ToolStack::default().service(breaks));
    let said = all(tools.answers(prefers(&json!({})))).await;
    assert_eq!(said.len(), 2);
    assert_eq!(chunk(&said[0]), (0, false, "partial", &json!("one")));
    assert_eq!((&said[1]["status"], &said[1]["finalChunk"]), (&json!("error"), &json!(true)));
    assert_eq!((&said[1]["chunkIndex"], &said[1]["error"]["ran"]), (&json!(1), &json!("unknown")));
}

#[tokio::test(start_paused = true)]
async fn ut_09_a_stream_is_cancelled_by_its_id() {
    let endless = stream_fn(|_: ToolCall| {
        stream::iter(["one"]).map(Ok::<_, BoxError>).chain(stream::pending())
    });
    let tools = Envelopes::new(ToolStack::default().service(endless));
    let canceller = tools.canceller();
    let mut stream = pin!(tools.answers(prefers(&json!({"cancellationId": "stop"}))));
    let first: Value = stream.next().await.unwrap().to_json().parse().unwrap();
    assert_eq!(chunk(&first), (0, false, "partial", &json!("one")));
    assert_eq!((canceller.running(), canceller.cancel(&CallContext::default(), "stop")), (1, 1));
    let last: Value = stream.next().await.unwrap().to_json().parse().unwrap();
    assert_eq!(
        (&last["error"]["code"], &last["error"]["ran"]),
        (&json!("cancelled"), &json!("unknown"))
    );
    assert_eq!((&last["chunkIndex"], &last["finalChunk"]), (&json!(1), &json!(true)));
    assert!(stream.next().await.is_none());
    assert_eq!(canceller.running(), 0);
    // Cancelled before it begins, it does not begin.
    let mut stream = pin!(tools.answers(prefers(&json!({"cancellationId": "stop"}))));
    assert_eq!(canceller.cancel(&CallContext::default(), "stop"), 1);
    let last: Value = stream.next().await.unwrap().to_json().parse().unwrap();
    assert_eq!((&last["error"]["code"], &last["chunkIndex"]), (&json!("cancelled"), &json!(0)));
    assert!(stream.next().await.is_none());
}
