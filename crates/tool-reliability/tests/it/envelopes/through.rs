//! What a request says reaches the stack and the tool.
use super::*;
use tr_core::{Effect, Priority, Ran, Verdict, call::CallContext};
use tr_testkit::calls::{answers, fails};

#[tokio::test(start_paused = true)]
async fn ut_02_a_request_without_an_id_gets_one_and_defaults() {
    let bench = Bench::new([answers("ok")]);
    let request = r#"{"tool": "read", "action": "", "params": {}}"#;
    let ids = [bench.ask(request).await, bench.ask(request).await]
        .map(|said| said["requestId"].as_str().unwrap().to_owned());
    for id in &ids {
        let groups: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!((groups, id.as_bytes()[14]), (vec![8, 4, 4, 4, 12], b'7'), "{id}");
    }
    assert_ne!(ids[0], ids[1]);
    let seen = &bench.handle.requests()[0];
    assert_eq!(seen.parts().request_id.as_deref(), Some(&*ids[0]));
    assert_eq!((seen.parts().priority, seen.parts().hints.timeout), (Priority::Normal, None));
}

#[tokio::test(start_paused = true)]
async fn what_a_request_says_is_the_call_s_in_either_form() {
    let bench = Bench::new([answers("ok")]);
    let said = json!({
        "idempotencyKey": "k", "timeout": 5000, "priority": "high", "cancellationId": "c",
        "retryPolicy": {"maxAttempts": 2}, "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331", "preferStreaming": true, "cacheKey": "x",
    });
    let params = json!({"command": "ls", "_utee": said});
    let context = || {
        let mut context = CallContext::default();
        context.session = Some("mine".into());
        context
    };
    let utee = utee("exec", json!({"params": params, "action": "run"}));
    for request in [utee, bs_tim_5("exec", &params)] {
        let request = EnvelopeRequest::from(request).on_behalf_of(context());
        assert_eq!(bench.ask(request).await["status"], "success");
    }
    let seen = bench.handle.requests();
    assert_eq!(seen.len(), 2, "the tools differ: exec.run and exec");
    for call in &seen {
        let parts = call.parts();
        assert_eq!(parts.params.get(), r#"{"command":"ls"}"#, "`_utee` is not the tool's");
        assert_eq!(parts.context.session.as_deref(), Some("mine"));
        assert_eq!(parts.idempotency.key.as_deref(), Some("k"));
        assert_eq!(parts.hints.timeout, Some(seconds(5)));
        assert_eq!((parts.priority, parts.cancellation_id.as_deref()), (Priority::High, Some("c")));
        assert_eq!(parts.retry.as_ref().unwrap().attempts, Some(2));
        assert!(parts.hints.prefer_streaming);
        assert_eq!(parts.hints.cache_key.as_deref(), Some("x"));
    }
    assert_eq!(seen[0].parts().context.actor, None);
    assert_eq!(seen[1].parts().context.actor.as_deref(), Some("a"));
    let wanted = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_eq!(seen[0].parts().trace.traceparent.as_deref(), Some(wanted));
}

#[tokio::test(start_paused = true)]
async fn ut_02_the_timeout_of_a_request_is_that_of_its_attempts() {
    let bench = Bench::new([Step::Hang]);
    let said = bench.ask(utee("pay", json!({"timeout": 2000}))).await;
    assert_eq!(
        (&said["error"]["code"], &said["error"]["ran"]),
        (&json!("timeout"), &json!("unknown"))
    );
    assert_eq!((&said["durationMs"], &said["attempts"]), (&json!(2000), &json!(1)));
    assert_eq!(
        said["error"]["message"].as_str().unwrap().lines().next(),
        Some("Tool timeout after 2s")
    );
}

#[tokio::test(start_paused = true)]
async fn ut_05_the_retry_policy_of_a_request_is_its_own() {
    let down = || fails("http_503", Verdict::TRANSIENT, Ran::Unknown);
    for (policy, attempts) in [(json!(null), 4), (json!({"maxAttempts": 2}), 2)] {
        let bench = Bench::new([down()]);
        let said = bench.ask(utee("read", json!({"hints": {"retryPolicy": policy}}))).await;
        assert_eq!((&said["attempts"], bench.handle.calls()), (&json!(attempts), attempts));
    }
}

#[tokio::test(start_paused = true)]
async fn a_catalog_says_what_is_known_of_a_tool() {
    let bench = Bench::new([answers("ok")]);
    for tool in ["read", "pay", "other"] {
        bench.ask(utee(tool, json!({}))).await;
    }
    let effects: Vec<_> = bench.handle.requests().iter().map(|call| call.parts().effect).collect();
    assert_eq!(effects, [Effect::ReadOnly, Effect::Mutating, Effect::Mutating]);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_the_wall_clock_is_one_of_the_call() {
    let bench = Bench::new([Step::Hang]);
    let layer = EnvelopesLayer::builder().clock(tr_core::SetClock::at(1_000_000)).build().unwrap();
    let tool = ScriptedTool::script([Step::Hang]);
    let tools = layer.layer(bench.stack.service(tool));
    let request = bs_tim_5("pay", &json!({}));
    let request = request.replace(r#""control":{}"#, r#""control":{"deadlineAtMs":1003000}"#);
    let Ok(answer) = tools.oneshot(request.into()).await;
    let said: Value = answer.to_json().parse().unwrap();
    assert_eq!((&said["status"], &said["durationMs"]), (&json!("timeout"), &json!(3000)));
}

#[tokio::test(start_paused = true)]
async fn ut_01_a_request_that_is_read_already_is_taken_too() {
    let bench = Bench::new([answers("ok")]);
    let read = tr_wire::utee::ToolRequest::read(utee("read", json!({}))).unwrap();
    assert_eq!(bench.ask(read).await["result"], "ok");
    let read = tr_wire::bs_tim_5::ToolCallEnvelope::read(bs_tim_5("read", &json!({}))).unwrap();
    assert_eq!(bench.ask(read).await["output"]["content"], "ok");
}
