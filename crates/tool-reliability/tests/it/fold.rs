//! What a caller on the wire gets, whatever happens below.
use serde_json::json;
use std::time::Duration;
use tool_reliability::{ErrorsAsOutcomes, ToolStack};
use tower::{Layer, ServiceExt};
use tr_core::{Effect, Params, Ran, ToolCall, ToolOutcome, Verdict};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails, laws, reports},
    tool::Step,
};
use tr_wire::bs_tim_5::ToolResultEnvelope;

async fn status(
    script: impl IntoIterator<Item = Step<ToolOutcome>>,
    calls: usize,
) -> serde_json::Value {
    let stack = ToolStack::builder()
        .breaker(|breaker| breaker.consecutive_failures(2))
        .attempt_timeout(|timeout| timeout.after(Duration::from_secs(1)))
        .build()
        .unwrap();
    let tool =
        ErrorsAsOutcomes::new(stack.service(ScriptedTool::script(script).then_repeat_last()));
    let mut last = None;
    for n in 0..calls {
        let call = ToolCall::new("pay", Params::empty_object()).request_id("r").turn(n.to_string());
        let Ok(outcome) = tool.clone().oneshot(call.clone()).await;
        let attempts = outcome.retried().len() as u32 + 1;
        last =
            Some(ToolResultEnvelope::of(&call, Ok(&outcome), attempts, Duration::ZERO).to_json());
    }
    last.unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_end_has_the_status_of_the_seed() {
    let success = status([answers("ok")], 1).await;
    assert_eq!(success["status"], "success");

    let permanent = status([reports("invalid_input", "Invalid airport code: XYZ")], 1).await;
    assert_eq!(
        (&permanent["status"], &permanent["error"]["terminal"]),
        (&"error".into(), &true.into())
    );

    // A mutating tool that may have run is not retried.
    for ran in [Ran::Unknown, Ran::Yes] {
        let lost = status([fails("connection_reset", Verdict::TRANSIENT, ran)], 1).await;
        assert_eq!(lost["status"], "error");
        let error = &lost["error"];
        let said = [&error["retriable"], &error["terminal"], &error["ran"]];
        assert_eq!(said, [&json!(false), &json!(true), &json!(ran)]);
    }

    let timeout = status([Step::Hang], 1).await;
    assert_eq!(timeout["status"], "timeout");
    let said = timeout["error"]["message"].as_str().unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines, ["Tool timeout after 1s", "it may have run; do not repeat it; check first"]);

    let open = status([fails("http_503", Verdict::TRANSIENT, Ran::Unknown)], 3).await;
    assert_eq!(open["status"], "circuit_open");
    assert_eq!(
        (&open["error"]["breakerState"], &open["error"]["ran"]),
        (&"OPEN".into(), &"no".into())
    );
}

#[tokio::test(start_paused = true)]
async fn retries_are_listed() {
    let stack = ToolStack::default();
    let script = [fails("http_503", Verdict::TRANSIENT, Ran::No)];
    let tool =
        ErrorsAsOutcomes::new(stack.service(ScriptedTool::script(script).then_repeat_last()));
    let call = ToolCall::new("search", Params::empty_object()).effect(Effect::ReadOnly);
    let Ok(outcome) = tool.oneshot(call).await;
    assert_eq!(outcome.retried().len(), 3);
    let envelope = ToolResultEnvelope::of(
        &ToolCall::new("search", Params::empty_object()),
        Ok(&outcome),
        4,
        Duration::ZERO,
    );
    let json: serde_json::Value = envelope.to_json().parse().unwrap();
    assert_eq!(
        (&json["status"], json["retriedBy"].as_array().unwrap().len()),
        (&"retry_exhausted".into(), 3)
    );
}

#[test]
fn the_laws_hold_for_the_whole_stack() {
    laws().detaches().check(|inner| ToolStack::default().layer(inner));
}
