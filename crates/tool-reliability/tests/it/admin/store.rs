//! Records that are in a store are seen and changed there, and a store that is away hides nothing else.
use super::{admin, around, call, order, state};
use http::StatusCode;
use serde_json::json;
use std::{future::ready, time::Duration};
use tool_reliability::{
    ToolStack,
    idempotency::store::{
        Change, ClaimRequest, Claimed, Listing, Memory, Query, RecordStore, Seen, StoreError,
        StoreFuture, Stored, UnreadableRecord,
    },
};
use tower::ServiceExt;
use tr_core::{Effect, Ran, Verdict, canonical::Key};
use tr_testkit::{
    calls::{answers, fails},
    tool::Step,
};

fn stack(records: &Memory) -> ToolStack {
    ToolStack::builder().idempotency(|it| it.store(records.clone())).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_of_another_process_is_listed_and_settled() {
    let records = Memory::new();
    let dead = around(&stack(&records), fails("timeout", Verdict::TRANSIENT, Ran::Unknown));
    dead.oneshot(call("pay", "order-42")).await.unwrap_err();

    let stack = stack(&records);
    let admin = admin(&stack);
    let seen = state(&admin).await;
    let unknown = &seen["store"]["unknown"][0];
    assert_eq!((&unknown["tool"], &unknown["state"]), (&json!("pay"), &json!("unknown")));
    let mut settle = json!({
        "action": "settle", "key": unknown["key"], "epoch": 99, "outcome": "done", "output": "paid",
    });
    let (status, _) = order(&admin, settle.clone()).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "another run is meant");
    settle["epoch"] = unknown["epoch"].clone();
    // This store does not know which processes live.
    let mut not_run = settle.clone();
    (not_run["outcome"], not_run["output"]) = (json!("did_not_run"), json!(null));
    let (status, said) = order(&admin, not_run).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(said["error"].as_str().unwrap().contains("may still run"), "{said}");
    assert_eq!(order(&admin, settle).await, (StatusCode::OK, json!({ "settled": true })));

    assert_eq!(state(&admin).await["store"]["unknown"], json!([]));
    let replay = around(&stack, answers("again")).oneshot(call("pay", "order-42")).await.unwrap();
    assert_eq!(replay.content().unwrap().get(), r#""paid""#);
}

/// As those of this process are: by the lease that the layer has, and not by one of the page's own.
#[tokio::test(start_paused = true)]
async fn a_call_of_another_process_is_listed_past_the_layer_s_lease() {
    let records = Memory::new();
    let stack = |records: &Memory| {
        let lease = Duration::from_secs(30);
        let made = ToolStack::builder().attempt_timeout(|it| it.after(20 * lease));
        made.idempotency(|it| it.store(records.clone()).inflight_ttl(lease)).build().unwrap()
    };
    let hang = around(&stack(&records), Step::Hang);
    let running = tokio::spawn(hang.oneshot(call("slow", "k")));
    let stack = stack(&records);
    let admin = admin(&stack);
    for (secs, listed) in [(29, 0), (2, 1)] {
        // It renews its lease meanwhile.
        tokio::time::sleep(Duration::from_secs(secs)).await;
        assert_eq!(state(&admin).await["store"]["stale"].as_array().unwrap().len(), listed);
    }
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn records_of_another_process_are_flushed() {
    let records = Memory::new();
    let other = around(&stack(&records), answers("ok"));
    for key in ["a", "b", "c"] {
        other.clone().oneshot(call("pay", key)).await.unwrap();
    }
    let admin = admin(&stack(&records));
    let mut flush = json!({ "action": "flush", "session": "s" });
    assert_eq!(order(&admin, flush.clone()).await, (StatusCode::OK, json!({ "wouldFlush": 3 })));
    flush["confirm"] = json!(2);
    assert_eq!(order(&admin, flush.clone()).await.0, StatusCode::CONFLICT);
    flush["confirm"] = json!(3);
    assert_eq!(order(&admin, flush.clone()).await, (StatusCode::OK, json!({ "flushed": 3 })));
    assert_eq!(order(&admin, flush).await.1["wouldFlush"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_hides_nothing_else() {
    let stack =
        ToolStack::builder().idempotency(|it| it.store(Away { damaged: None })).build().unwrap();
    let read = call("read", "k").effect(Effect::ReadOnly);
    around(&stack, answers("ok")).oneshot(read).await.unwrap();

    let admin = admin(&stack);
    let seen = state(&admin).await;
    assert_eq!(seen["breakers"][1]["name"], "read");
    let error = seen["store"]["error"].as_str().expect("it is away");
    assert!(error.ends_with("no route to it"), "{error}");
    let flush = json!({ "action": "flush", "session": "s" });
    let (status, said) = order(&admin, flush).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert!(said["error"].as_str().unwrap().ends_with("no route to it"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_is_shown_with_what_to_do() {
    let damaged = Some(UnreadableRecord {
        key: Key::from_bytes([7; 32]),
        tool: Some("book".into()),
        changed_at: Some(5),
        why: "its state is torn".into(),
    });
    let stack = ToolStack::builder().idempotency(|it| it.store(Away { damaged })).build().unwrap();
    let store = state(&admin(&stack)).await["store"].clone();
    let one = json!({
        "key": "07".repeat(32), "tool": "book", "state": "unreadable", "updatedAtMs": 5,
        "error": "its state is torn",
    });
    assert_eq!((&store["unknown"], &store["unreadable"]), (&json!([]), &json!([one])));
    assert!(store["whatToDo"].as_str().unwrap().contains("forget KEY --force"), "{store}");
}

/// A store that nobody can reach, except that it lists a record that cannot be read.
#[derive(Debug)]
struct Away {
    damaged: Option<UnreadableRecord>,
}

fn away<'s, T: Send + 's>() -> StoreFuture<'s, T> {
    Box::pin(ready(Err(StoreError::unreachable("no route to it"))))
}

impl RecordStore for Away {
    fn claim<'s>(&'s self, _: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        away()
    }
    fn change<'s>(&'s self, _: &'s Key, _: Change<'s>) -> StoreFuture<'s, bool> {
        away()
    }
    fn read<'s>(&'s self, _: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        away()
    }
    fn watch<'s>(&'s self, _: &'s Key, _: Seen) -> StoreFuture<'s, ()> {
        away()
    }
    fn list<'s>(&'s self, _: &'s Query, _: usize, _: bool) -> StoreFuture<'s, Listing> {
        let Some(damaged) = self.damaged.clone() else { return away() };
        Box::pin(ready(Ok(Listing { records: Vec::new(), unreadable: vec![damaged] })))
    }
    fn count<'s>(&'s self, _: &'s Query) -> StoreFuture<'s, u64> {
        away()
    }
    fn flush<'s>(&'s self, _: &'s Query) -> StoreFuture<'s, u64> {
        away()
    }
    fn clear<'s>(&'s self, _: &'s Key) -> StoreFuture<'s, bool> {
        away()
    }
    fn sweep(&self) -> StoreFuture<'_, u64> {
        away()
    }
    fn mark<'s>(&'s self, _: &'s [u8], _: &'s [u8]) -> StoreFuture<'s, Vec<u8>> {
        Box::pin(ready(Ok(Vec::new())))
    }
    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        away()
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_still_run_is_settled_as_not_run_by_force() {
    let records = Memory::new();
    let dead = around(&stack(&records), fails("timeout", Verdict::TRANSIENT, Ran::Unknown));
    dead.oneshot(call("pay", "order-42")).await.unwrap_err();
    let stack = stack(&records);
    let admin = admin(&stack);
    let key = state(&admin).await["store"]["unknown"][0]["key"].clone();
    let settle = json!({ "action": "settle", "key": key, "outcome": "did_not_run", "force": true,
        "why": "the bank has none" });
    assert_eq!(order(&admin, settle).await, (StatusCode::OK, json!({ "settled": true })));
    let attempts = async || {
        let records = stack.records().in_store().unwrap().records(9).await.unwrap().records;
        serde_json::to_value(&records[0].execution.as_ref().unwrap().attempts).unwrap()
    };
    let by = json!({ "by": "admin endpoint, 127.0.0.1:5000", "why": "the bank has none" });
    assert_eq!(attempts().await[0]["settlement"], by);
    around(&stack, answers("paid")).oneshot(call("pay", "order-42")).await.unwrap();
    let now = attempts().await;
    assert_eq!((&now[0]["settlement"], &now[1]["settlement"]), (&by, &json!(null)), "{now}");
}
