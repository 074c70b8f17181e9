//! Params that fail the schema in their tool's manifest, through the whole stack.
use std::sync::Arc;
use tool_reliability::{ErrorsAsOutcomes, ToolStack, loopguard::LoopDetected};
use tower::ServiceExt;
use tr_core::{
    Effect, Json, KeyRef, Params, Ran, ToolCall, ToolManifest, Verdict, code, failure_info, find,
    manifest::InvalidParams,
};
use tr_testkit::calls::{ScriptedTool, answers};

const SCHEMA: &str = r#"{
    "type": "object", "required": ["path"],
    "properties": {"path": {"type": "string"}, "at": {"type": "object", "properties": {"line": {"type": "integer"}}}}
}"#;

fn read(params: &str) -> ToolCall {
    let mut manifest = ToolManifest::new("read");
    manifest.effect = Some(Effect::ReadOnly);
    manifest.input_schema = Some(Json::from_text(SCHEMA).unwrap());
    ToolCall::new("read", Params::from_text(params).unwrap())
        .manifested(Arc::new(manifest))
        .session("s")
        .turn("t")
        .idempotency_key("read-1")
}

#[tokio::test(start_paused = true)]
async fn params_that_fail_their_schema_are_refused_before_anything_runs() {
    let stack = ToolStack::default();
    let script = ScriptedTool::script([answers("fn a() {}")]);
    let handle = script.handle();
    let tool = stack.service(script);
    let error = tool.clone().oneshot(read(r#"{"at": {"line": "7"}}"#)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Missing required parameter: path; Expected integer but received string at /at/line\n[NON-RETRYABLE]"
    );
    assert_eq!(find::<InvalidParams>(&*error).unwrap().faults().len(), 2);
    let found = failure_info(&*error).unwrap();
    assert_eq!(
        (found.code(), found.ran(), found.verdict()),
        (code::INVALID_ENVELOPE, Ran::No, Verdict::Permanent)
    );
    // No attempt, no record and no breaker has heard of it.
    assert_eq!(handle.calls(), 0);
    assert!(stack.records().records().is_empty());
    assert!(stack.breakers().get(KeyRef::new("read")).is_none());
    // The key is free for the call as it should be.
    let outcome = tool.oneshot(read(r#"{"path": "a.rs", "at": {"line": 7}}"#)).await.unwrap();
    assert!(outcome.error().is_none() && !outcome.from_cache());
}

#[tokio::test(start_paused = true)]
async fn the_loop_guard_counts_params_that_fail_their_schema() {
    let stack = ToolStack::default();
    let script = ScriptedTool::script([]);
    let handle = script.handle();
    let tool = stack.service(script);
    for n in 0..2 {
        let error = tool.clone().oneshot(read("{}")).await.unwrap_err().to_string();
        assert_eq!(
            error.contains("[LOOP DETECTED] Tool \"read\" failed 2 times"),
            n == 1,
            "{error}"
        );
    }
    assert!(find::<LoopDetected>(&*tool.clone().oneshot(read("{}")).await.unwrap_err()).is_some());
    let folded = ErrorsAsOutcomes::new(tool).oneshot(read(r#"{"path": 7}"#)).await.unwrap();
    let failure = folded.error().unwrap();
    assert_eq!((&*failure.code, failure.ran), (code::INVALID_ENVELOPE, Ran::No));
    assert_eq!(handle.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_is_none_is_said_to_be_and_runs_nothing() {
    let mut manifest = ToolManifest::new("read");
    manifest.input_schema = Some(Json::from_text(r#"{"type": 7}"#).unwrap());
    let script = ScriptedTool::script([]);
    let handle = script.handle();
    let call = ToolCall::new("read", Params::empty_object()).manifested(Arc::new(manifest));
    let error = ToolStack::default().service(script).oneshot(call).await.unwrap_err().to_string();
    assert!(error.starts_with("The manifest of read has an invalid input schema: "), "{error}");
    assert_eq!(handle.calls(), 0);
}
