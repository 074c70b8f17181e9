//! Stacks over one store of records, each a process of its own.
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tool_reliability::{ToolStack, idempotency::store::Memory};
use tower::{ServiceExt, service_fn};
use tr_core::{BoxError, FailureInfo, MatchedOn, Params, Ran, ToolCall, ToolOutcome, Verdict};

fn stack(records: &Memory) -> ToolStack {
    ToolStack::builder().idempotency(|it| it.store(records.clone())).build().unwrap()
}

fn pay() -> ToolCall {
    ToolCall::new("pay", Params::from_text(r#"{"amount": 5}"#).unwrap())
        .session("s-1")
        .idempotency_key("order-42")
}

#[tokio::test(start_paused = true)]
async fn one_stack_runs_the_call_and_the_other_gets_its_answer() {
    let records = Memory::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tool = {
        let seen = seen.clone();
        service_fn(move |call: ToolCall| {
            let fence = call.fencing_token().expect("it runs under a claim");
            let first = {
                let mut seen = seen.lock().unwrap();
                seen.push((call.attempt(), fence));
                seen.len() == 1
            };
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if first {
                    let refused =
                        FailureInfo::new("connection_refused", Ran::No, Verdict::TRANSIENT);
                    return Err(BoxError::from(refused));
                }
                Ok(ToolOutcome::success(serde_json::json!("paid")))
            }
        })
    };
    let one = stack(&records).service(tool.clone());
    let other = stack(&records);
    let first = tokio::spawn(one.oneshot(pay()));
    tokio::task::yield_now().await;
    let second = other.service(tool).oneshot(pay()).await.unwrap();
    let first = first.await.unwrap().unwrap();

    assert!(!first.from_cache() && first.recorded());
    assert_eq!(first.retried().len(), 1);
    assert_eq!(second.replay().unwrap().matched_on, MatchedOn::Inflight);
    assert_eq!(second.content(), first.content());
    assert_eq!(second.retried(), first.retried());
    // Both attempts under one claim.
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(seen[0].1, seen[1].1);

    let handle = other.records().in_store().unwrap();
    let listed = handle.records(10).await.unwrap().records;
    assert_eq!((listed.len(), listed[0].epoch), (1, seen[0].1.epoch));
    assert_eq!(other.records().counts().records, 0, "the store has it");
}
