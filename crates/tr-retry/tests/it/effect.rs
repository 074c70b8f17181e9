//! A mutating tool never runs twice because of us.
use crate::common::{Tool, call, ok, transient};
use std::sync::Arc;
use tower::{Layer, ServiceExt};
use tr_core::{
    CallParts, Effect, FailureInfo, Params, Ran, ToolCall, ToolManifest, Verdict, failure_info,
};
use tr_retry::{RetryExhausted, RetryLayer, RetryStop};
use tr_testkit::tool::Step;

/// How many attempts a call gets whose first ends like this and whose second succeeds.
async fn attempts(call: ToolCall, ran: Ran) -> usize {
    let tool = Tool::script([transient("down", ran), ok()]);
    let asked = tool.handle();
    let _ = RetryLayer::default().layer(tool).oneshot(call).await;
    asked.calls()
}

fn hinted(effect: Effect, safety_critical: bool, retry_safe: bool) -> ToolCall {
    let mut parts = CallParts::new("pay", Params::empty_object());
    parts.effect = effect;
    parts.hints.safety_critical = safety_critical;
    parts.hints.expected_retry_safe = retry_safe;
    parts.into()
}

#[tokio::test(start_paused = true)]
async fn a_mutating_call_that_may_have_run_is_not_retried() {
    use Effect::{Idempotent, Mutating, ReadOnly};
    for (effect, ran, expected) in [
        (ReadOnly, Ran::Unknown, 2),
        (ReadOnly, Ran::Yes, 2),
        (Idempotent, Ran::Unknown, 2),
        (Idempotent, Ran::Yes, 2),
        (Mutating, Ran::No, 2),
        (Mutating, Ran::Unknown, 1),
        (Mutating, Ran::Yes, 1),
    ] {
        assert_eq!(attempts(call(effect), ran).await, expected, "{effect:?} {ran:?}");
    }
    let undeclared = ToolCall::new("pay", Params::empty_object());
    assert_eq!(attempts(undeclared, Ran::Unknown).await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_caller_may_say_that_a_repeat_is_safe_or_forbid_it() {
    for (effect, critical, safe, expected) in [
        (Effect::Mutating, false, true, 2),
        (Effect::Mutating, true, true, 1),
        (Effect::Idempotent, true, false, 1),
        (Effect::ReadOnly, true, false, 2),
    ] {
        let call = hinted(effect, critical, safe);
        assert_eq!(attempts(call, Ran::Unknown).await, expected, "{effect:?} {critical} {safe}");
    }
    // What did not run may always be repeated.
    assert_eq!(attempts(hinted(Effect::Mutating, true, false), Ran::No).await, 2);
}

#[tokio::test(start_paused = true)]
async fn the_manifest_may_say_that_a_repeat_is_safe() {
    for (retry_safe, expected) in [(None, 1), (Some(false), 1), (Some(true), 2)] {
        let mut manifest = ToolManifest::new("pay");
        manifest.retry_safe = retry_safe;
        let call = ToolCall::new("pay", Params::empty_object()).manifested(Arc::new(manifest));
        assert_eq!(attempts(call, Ran::Unknown).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_manifest_forbids_no_caller_calls_safe() {
    for (retry_safe, expected) in [(None, 2), (Some(false), 1), (Some(true), 2)] {
        let mut manifest = ToolManifest::new("pay");
        manifest.retry_safe = retry_safe;
        let call = hinted(Effect::Mutating, false, true).manifested(Arc::new(manifest));
        assert_eq!(attempts(call, Ran::Unknown).await, expected, "{retry_safe:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ran_is_folded_over_all_attempts() {
    let end = async |script: [Step<_>; 3]| {
        let tool = Tool::script(script);
        let call = call(Effect::ReadOnly);
        RetryLayer::per_request().layer(tool).oneshot(call).await.unwrap_err()
    };
    let step = |ran| transient("down", ran);
    for (rans, folded) in [
        ([Ran::No, Ran::No, Ran::No], Ran::No),
        ([Ran::Unknown, Ran::No, Ran::No], Ran::Unknown),
        ([Ran::No, Ran::Yes, Ran::No], Ran::Yes),
        ([Ran::Yes, Ran::Unknown, Ran::No], Ran::Unknown),
    ] {
        let error = end(rans.map(step)).await;
        assert_eq!(failure_info(&*error).unwrap().ran(), folded, "{rans:?}");
    }
    // The last attempt did not run, an earlier one did: it must not look as if nothing happened.
    let refused = Step::err(FailureInfo::new("bad", Ran::No, Verdict::Permanent));
    let error = end([step(Ran::Yes), refused.clone(), refused]).await;
    let facts = failure_info(&*error).unwrap();
    assert_eq!((facts.code(), facts.ran(), facts.verdict()), ("bad", Ran::Yes, Verdict::Permanent));
}

#[tokio::test(start_paused = true)]
async fn a_mutating_call_stops_at_the_first_attempt_that_may_have_run() {
    let script = [transient("full", Ran::No), transient("reset", Ran::Unknown)];
    let tool = Tool::script(script);
    let asked = tool.handle();
    let error =
        RetryLayer::per_request().layer(tool).oneshot(call(Effect::Mutating)).await.unwrap_err();
    let error = error.downcast_ref::<RetryExhausted>().unwrap();
    assert_eq!(
        (error.why(), error.code(), error.ran()),
        (RetryStop::Effect, "reset", Ran::Unknown)
    );
    assert_eq!(asked.calls(), 2);
}
