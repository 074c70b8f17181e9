//! Records as operators see them.
use crate::support::*;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tr_core::{Effect, FailureInfo, Ran, SetClock, Verdict};
use tr_idempotency::{Filter, IdempotencyLayer};
use tr_testkit::tool::{Scripted, Step};

#[tokio::test(start_paused = true)]
async fn a_record_reads_as_the_dedupe_record() {
    let wall = Arc::new(SetClock::at(1_000_000));
    let layer = IdempotencyLayer::builder().wall_clock(wall).build().unwrap();
    let tool: Tool = Scripted::by(|n, _| {
        let end = match n {
            0 => Step::err(
                FailureInfo::new("http_503", Ran::Yes, Verdict::TRANSIENT).because("busy"),
            ),
            _ => Step::Ok(number(n)),
        };
        Step::after(Duration::from_millis(1_500), end)
    });
    let (service, records, _) = guarded_by(&layer, tool);
    let asked = || {
        let call = pay("order-42").effect(Effect::Idempotent);
        call.request_id("r-1").tool_call_id("toolu_1")
    };
    let id = asked().id().unwrap().unwrap();
    let seen = || serde_json::to_value(records.record(&id.key).unwrap()).unwrap();

    let first = start(&service, asked()).await;
    let record = seen();
    let owner = record["owner"].as_str().unwrap().to_owned();
    let request = json!({
        "sessionKey": "s",
        "actorId": "ada",
        "requestId": "r-1",
        "toolCallId": "toolu_1",
        "paramsDigest": id.digest.to_string(),
    });
    let expected = json!({
        "key": id.key.to_string(),
        "tool": "pay",
        "idempotencyKey": "order-42",
        "state": "inflight",
        "createdAtMs": 1_000_000,
        "updatedAtMs": 1_000_000,
        "expiresAtMs": 1_120_000,
        "ttlMs": 120_000,
        "request": request,
        "execution": { "attemptCount": 1, "attempts": [] },
        "lockUntilMs": 1_120_000,
        "version": 1,
        "epoch": 1,
        "owner": owner,
    });
    assert_eq!(record, expected);

    first.await.unwrap().unwrap_err();
    let record = seen();
    let failed = json!({
        "startedAtMs": 1_000_000,
        "finishedAtMs": 1_001_500,
        "status": "error",
        "retriable": true,
        "errorCode": "http_503",
    });
    assert_eq!(record["state"], "failed");
    assert_eq!((&record["ttlMs"], &record["expiresAtMs"]), (&json!(300_000), &json!(1_301_500)));
    assert_eq!(record["execution"], json!({ "attemptCount": 1, "attempts": [failed] }));
    let error = json!({
        "code": "http_503",
        "message": "http_503: the tool ran",
        "terminal": false,
        "shouldRetriable": true,
    });
    assert_eq!((&record["error"], record.get("lockUntilMs")), (&error, None));

    call(&service, best_effort(asked())).await.unwrap();
    let record = seen();
    let done = json!({
        "startedAtMs": 1_001_500,
        "finishedAtMs": 1_003_000,
        "status": "success",
        "retriable": false,
    });
    assert_eq!(record["state"], "done");
    assert_eq!(record["createdAtMs"], 1_000_000);
    assert_eq!(record["ttlMs"], 86_400_000);
    assert_eq!(record["execution"], json!({ "attemptCount": 2, "attempts": [failed, done] }));
    assert_eq!((&record["version"], &record["epoch"]), (&json!(4), &json!(2)));
    assert_eq!((record.get("error"), record.get("payload")), (None, None));
    assert_eq!(records.record(&id.key).unwrap().hashed_key(), Some(id.key));
}

#[tokio::test(start_paused = true)]
async fn records_are_counted_and_flushed_by_key_session_and_tool() {
    let tool: Tool = Scripted::by(|n, call: &tr_core::ToolCall| {
        let takes =
            if call.parts().idempotency.key.as_deref() == Some("running") { HOUR } else { SECOND };
        Step::after(takes, Step::Ok(number(n)))
    });
    let (service, records, asked) = guarded(tool);
    let fill = async || {
        for (session, key) in [("s", "a"), ("s", "b"), ("t", "a")] {
            call(&service, pay(key).session(session)).await.unwrap();
        }
    };
    fill().await;
    let running = start(&service, pay("running")).await;
    let key = key_of(&pay("a"));
    for (filter, expected) in [
        (Filter::Key(&key), 1),
        (Filter::Session("s"), 2),
        (Filter::Session("nobody"), 0),
        (Filter::Tool("pa"), 3),
        (Filter::Tool("pays"), 0),
    ] {
        assert_eq!(records.count(filter), expected, "{filter:?}");
        assert_eq!(records.flush(filter), expected, "{filter:?}");
        assert_eq!(records.count(filter), 0);
        fill().await;
    }
    // A call in flight is not flushed.
    assert_eq!(answer(running.await.unwrap()), 3);
    assert_eq!(asked.calls(), 4 + 1 + 2 + 3);
    assert_eq!(records.records().len(), records.counts().records);
}

#[tokio::test(start_paused = true)]
async fn unknown_mutating_calls_are_not_flushed_and_long_ones_are_stale() {
    let tool: Tool = Scripted::by(|n, _| match n {
        0 => fails("timeout", Ran::Unknown, Verdict::TRANSIENT),
        _ => Step::after(5 * MINUTE, Step::Ok(number(n))),
    });
    let (service, records, _) = guarded(tool);
    call(&service, pay("lost")).await.unwrap_err();
    assert_eq!(records.flush(Filter::Tool("")), 0);
    assert_eq!(records.unknown()[0].idempotency_key, "lost");

    let slow = start(&service, pay("slow")).await;
    pass(2 * MINUTE - SECOND).await;
    assert_eq!(records.stale(), []);
    pass(SECOND).await;
    assert_eq!(records.stale()[0].idempotency_key, "slow");
    // A stale call is not lost: its run keeps the lease, so no other caller may run it.
    assert_eq!(refusal(call(&service, best_effort(pay("slow"))).await).0, "idempotency_in_flight");
    assert_eq!(answer(slow.await.unwrap()), 1);
    assert_eq!(records.stale(), []);
}

/// The janitor's clock stands still between its ticks.
#[tokio::test(start_paused = true)]
async fn without_a_time_to_live_a_record_ends_with_its_call() {
    let tool: Tool = Scripted::by(|n, _| match n {
        0 => Step::after(SECOND, Step::Ok(number(0))),
        n => Step::after(Duration::from_millis(2), Step::Ok(number(n))),
    });
    let (service, records, asked) = guarded(tool);
    let _janitor = records.spawn_janitor();
    let brief = || {
        let mut call = read(pay("k"));
        let ttls = &mut call.parts_mut().idempotency.ttls;
        (ttls.done, ttls.failed) = (Some(Duration::ZERO), Some(Duration::ZERO));
        call
    };
    let (first, joined) = (start(&service, brief()).await, start(&service, brief()).await);
    assert_eq!((answer(first.await.unwrap()), answer(joined.await.unwrap())), (0, 0));
    for n in 1..4 {
        assert_eq!(answer(call(&service, brief()).await), n, "nothing is given again");
    }
    assert_eq!((asked.calls(), records.counts().records), (4, 0));
}
