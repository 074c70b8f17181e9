//! Failures that look like answers, through the whole stack.
use std::sync::Arc;
use tool_reliability::{Environment, Guarded, ToolStack, config::Live, idempotency::RecordState};
use tower::ServiceExt;
use tr_config::Config;
use tr_core::{
    Effect, Json, Params, Ran, ToolCall, ToolManifest, ToolOutcome, Verdict, code, failure_info,
};
use tr_testkit::{
    calls::ScriptedTool,
    tool::{Handle, Step},
};
use tr_wire::{EMPTY_RESULT, NONZERO_EXIT, NOT_OK};

/// Answers with this text, each time.
fn around(stack: &ToolStack, answer: &str) -> (Guarded<ScriptedTool>, Handle<ToolCall>) {
    let outcome = ToolOutcome::success(Json::from_text(answer).unwrap());
    let tool = ScriptedTool::script([Step::Ok(outcome)]).then_repeat_last();
    let handle = tool.handle();
    (stack.service(tool), handle)
}

fn call(effect: Effect) -> ToolCall {
    ToolCall::new("run", Params::empty_object()).effect(effect).session("s").turn("t")
}

async fn answered(stack: &ToolStack, answer: &str, call: ToolCall) -> (ToolOutcome, usize) {
    let (tool, handle) = around(stack, answer);
    let outcome = tool.oneshot(call).await.unwrap();
    (outcome, handle.calls())
}

#[tokio::test(start_paused = true)]
async fn ut_03_a_silent_failure_is_a_failure_of_the_stack() {
    for (answer, code) in [
        ("null", EMPTY_RESULT),
        (r#"{"ok":false}"#, NOT_OK),
        (r#"{"exitCode":1,"stderr":"no such file"}"#, NONZERO_EXIT),
        (r#"{"error":"quota"}"#, NOT_OK),
        (r#"{"error":["boom"]}"#, NOT_OK),
        (r#"{"error":5}"#, "5"),
    ] {
        let stack = ToolStack::default();
        let call = call(Effect::Mutating).idempotency_key("k");
        let (outcome, ran) = answered(&stack, answer, call.clone()).await;
        let error = outcome.error().unwrap_or_else(|| panic!("{answer} is a success"));
        assert_eq!((&*error.code, ran), (code, 1), "{answer}");
        assert_eq!((error.verdict, error.ran), (Some(Verdict::Permanent), Ran::Yes), "{answer}");
        assert_eq!(outcome.content().unwrap().get(), answer, "the tool's own words are kept");
        let records = stack.records().records();
        assert_eq!(records[0].state, RecordState::Failed, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn ut_03_the_loop_guard_counts_silent_failures() {
    let stack = ToolStack::default();
    let (tool, handle) = around(&stack, r#"{"exitCode":1}"#);
    for _ in 0..2 {
        tool.clone().oneshot(call(Effect::ReadOnly)).await.unwrap();
    }
    let error = tool.oneshot(call(Effect::ReadOnly)).await.unwrap_err();
    assert_eq!(failure_info(&*error).unwrap().code(), code::LOOP_DETECTED);
    assert_eq!(handle.calls(), 2, "each once: nobody knows that a repeat would help");
}

/// The tool has answered, whatever its words say of doors.
#[tokio::test(start_paused = true)]
async fn ut_03_a_mutating_tool_that_answers_a_silent_failure_has_run() {
    for answer in [
        r#"{"ok":false,"error":"connection refused"}"#,
        r#"{"ok":false,"code":429,"error":"rate limited","retryable":true}"#,
        r#"{"exitCode":1,"stderr":"503 Service Unavailable"}"#,
    ] {
        let stack = ToolStack::default();
        let mutating = call(Effect::Mutating).idempotency_key("k");
        let (outcome, ran) = answered(&stack, answer, mutating).await;
        let error = outcome.error().unwrap();
        assert!(error.verdict.unwrap().is_transient(), "{answer}");
        assert_eq!((error.ran, ran), (Ran::Unknown, 1), "{answer}");
        // A tool that only reads is tried again.
        let (_, ran) = answered(&ToolStack::default(), answer, call(Effect::ReadOnly)).await;
        assert_eq!(ran, 4, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn ut_04_envelopes_are_what_they_say_and_not_wrapped_again() {
    let envelope = |ran: &str| {
        format!(
            r#"{{"requestId":"r","status":"error","durationMs":5,"error":{{"code":"busy","message":"later","retryable":true{ran}}}}}"#
        )
    };
    for (ran, wanted, runs) in [
        (r#","ran":"no""#, Ran::No, 4),
        (r#","ran":"unknown""#, Ran::Unknown, 1),
        ("", Ran::Unknown, 1),
    ] {
        let stack = ToolStack::default();
        let (outcome, calls) = answered(&stack, &envelope(ran), call(Effect::Mutating)).await;
        let error = outcome.error().unwrap();
        assert_eq!((&*error.code, &*error.message), ("busy", "later"));
        assert_eq!((error.ran, calls), (wanted, runs), "{ran}");
    }
    let success = r#"{"requestId":"r","status":"success","result":{"n":1},"durationMs":5}"#;
    let (outcome, _) = answered(&ToolStack::default(), success, call(Effect::Mutating)).await;
    assert_eq!(outcome.content().unwrap().get(), r#"{"n":1}"#);
    // What was unwrapped is not looked into again.
    let inner = r#"{"requestId":"r","status":"success","result":{"ok":false},"durationMs":5}"#;
    let (outcome, _) = answered(&ToolStack::default(), inner, call(Effect::Mutating)).await;
    assert!(outcome.error().is_none());
}

#[tokio::test(start_paused = true)]
async fn looking_into_answers_can_be_turned_off_for_a_tool_and_for_all() {
    let is_failure = async |stack: &ToolStack, answer: &str, call: ToolCall| {
        answered(stack, answer, call).await.0.error().is_some()
    };
    let exit = r#"{"exitCode":1}"#;
    let config = r#"{"tools": {
        "grep": {"silent_failures": false},
        "log": {"null_is_success": true},
        "run": {}
    }}"#;
    let live = Live::new(Config::from_json(config).unwrap(), |builder| builder).unwrap();
    let of = |tool: &str| live.catalog().manifested(ToolCall::new(tool, Params::empty_object()));
    for (tool, answer, fails) in [
        ("grep", exit, false),
        ("grep", "null", false),
        ("log", exit, true),
        ("log", "null", false),
        ("run", exit, true),
        ("run", "null", true),
    ] {
        assert_eq!(is_failure(live.stack(), answer, of(tool)).await, fails, "{tool} {answer}");
    }
    let mut environment = Environment::default();
    environment.normalise = false;
    for off in [
        ToolStack::builder().silent_failures(false),
        ToolStack::builder().normalise(false),
        ToolStack::builder().environment(environment),
        ToolStack::builder().config(&Config::from_json(r#"{"normalise": false}"#).unwrap()),
    ] {
        let stack = off.build().unwrap();
        assert!(!is_failure(&stack, exit, call(Effect::Mutating)).await);
    }
}

/// A tool's manifest knows what its exit codes mean.
#[tokio::test(start_paused = true)]
async fn a_manifest_judges_silent_failures_by_their_codes() {
    let mut manifest = ToolManifest::new("run");
    manifest.effect = Some(Effect::ReadOnly);
    manifest.classification = vec![(NONZERO_EXIT.into(), Verdict::TRANSIENT)];
    let call = call(Effect::ReadOnly).manifested(Arc::new(manifest));
    let (outcome, ran) = answered(&ToolStack::default(), r#"{"exitCode":75}"#, call).await;
    assert_eq!((outcome.error().unwrap().ran, ran), (Ran::Unknown, 4));
}
