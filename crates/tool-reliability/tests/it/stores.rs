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

/// Two stacks of one configuration, one after the other, as two processes.
#[cfg(all(feature = "sqlite", feature = "encryption"))]
#[tokio::test]
async fn a_configuration_opens_the_stores_that_it_names() {
    use std::{fs, os::unix::fs::PermissionsExt as _};
    use tool_reliability::config::{Config, Live};
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("key"), "07".repeat(32)).unwrap();
    let run = async |more: serde_json::Value| {
        let config = serde_json::json!({
            "records": more,
            "sessions": {"where": path("new/sessions.db"), "format": "openai_chat"},
        });
        let live = Live::open(Config::from_json(&config.to_string()).unwrap(), |b| b).await?;
        let tool = live.stack().service(service_fn(async |_: ToolCall| {
            Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!("paid-17")))
        }));
        let call = pay().tool_call_id("call_1");
        let kept = tool.oneshot(call).await.map(|outcome| outcome.from_cache());
        let sessions = live.stack().sessions().unwrap();
        sessions.load("s-1").await.unwrap();
        let messages = sessions.with("s-1", |session, _| session.transcript().len());
        sessions.flush("s-1").await.unwrap();
        Ok::<_, tool_reliability::config::OpenError>((kept.is_ok_and(|kept| kept), messages))
    };
    let all = serde_json::json!({"where": path("records.db"), "name": "shop"});
    assert_eq!(run(all.clone()).await.unwrap(), (false, 2));
    assert_eq!(run(all).await.unwrap(), (true, 4), "both outlive the stack");
    let holds = |file: &str| {
        let bytes = fs::read(path(file)).unwrap_or_default();
        bytes.windows(7).any(|window| window == b"paid-17")
    };
    // In this order, since closing the store moves it from the log into the file.
    assert!(holds("records.db-wal") || holds("records.db"));

    let sealed = serde_json::json!({"where": path("sealed.db"), "key_file": path("key")});
    fs::set_permissions(path("key"), fs::Permissions::from_mode(0o644)).unwrap();
    let error = run(sealed.clone()).await.unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    fs::set_permissions(path("key"), fs::Permissions::from_mode(0o600)).unwrap();
    run(sealed).await.unwrap();
    let error = run(serde_json::json!({"where": path("sealed.db")})).await.unwrap_err();
    assert!(error.to_string().contains("are encrypted, and no key was given"), "{error}");
    assert!(!holds("sealed.db-wal") && !holds("sealed.db"));

    let digest = serde_json::json!({"where": path("digest.db"), "bodies": "digest"});
    run(digest).await.unwrap();
    assert!(!holds("digest.db-wal") && !holds("digest.db"));
    let error = run(serde_json::json!({"where": path("key")})).await.unwrap_err().to_string();
    assert!(error.starts_with("`records.where` cannot be used: "), "{error}");
}
