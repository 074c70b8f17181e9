//! What a call whose deadline passes says of its tool, through all layers.
use std::{error::Error, future::poll_fn, task::Poll, time::Duration};
use tokio::{
    spawn,
    time::{Instant, sleep},
};
use tool_reliability::{
    ErrorsAsOutcomes, ToolStack, config,
    idempotency::store::Memory,
    retry::{RetryExhausted, RetryStop},
};
use tower::ServiceExt;
use tr_core::{Effect, Params, Ran, ToolCall, ToolOutcome, Verdict, code, failure_info, find};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails},
    tool::Step,
};
use tr_wire::bs_tim_5::ToolResultEnvelope;

const SECOND: Duration = Duration::from_secs(1);

fn due_in(left: Duration) -> ToolCall {
    let deadline = (Instant::now() + left).into_std();
    ToolCall::new("pay", Params::empty_object()).session("s").deadline(deadline)
}

fn said<'e>(error: &'e (dyn Error + 'static)) -> (&'e str, Ran) {
    failure_info(error).map(|facts| (facts.code(), facts.ran())).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_never_gets_ready_has_not_run_and_may_be_asked_again() {
    let tool = ScriptedTool::script([answers("paid")]).capacity(0);
    let (asked, tool) = (tool.handle(), ToolStack::default().service(tool));
    let pay = |turn: &str| due_in(5 * SECOND).turn(turn).idempotency_key("order-42");
    let start = Instant::now();
    let error = tool.clone().oneshot(pay("1")).await.unwrap_err();
    assert_eq!((said(&*error), start.elapsed()), ((code::TIMEOUT, Ran::No), 5 * SECOND));
    assert_eq!(error.to_string(), "Call timeout: the tool was not ready for 5s");
    assert_eq!((asked.calls(), asked.waiting()), (0, 0));

    let Ok(outcome) = ErrorsAsOutcomes::new(tool.clone()).oneshot(pay("2")).await;
    let json = ToolResultEnvelope::of(&pay("2"), Ok(&outcome), 1, 5 * SECOND).to_json();
    let json: serde_json::Value = json.parse().unwrap();
    assert_eq!(
        (&json["status"], &json["error"]["ran"]),
        (&"timeout".into(), &"no".into()),
        "{json}"
    );

    asked.set_capacity(1);
    tool.oneshot(pay("3")).await.unwrap();
    assert_eq!(asked.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_between_attempts_and_in_the_wait_of_a_later_one_says_what_they_said() {
    for ran in [Ran::No, Ran::Unknown] {
        let down = || [fails("http_503", Verdict::TRANSIENT, ran), answers("ok")];
        let reads = |left| due_in(left).effect(Effect::ReadOnly);

        // The next attempt would wait for its tool until it is too late.
        let tool = ScriptedTool::script(down()).capacity(1);
        let (asked, tool) = (tool.handle(), ToolStack::default().service(tool));
        let call = spawn(tool.oneshot(reads(5 * SECOND)));
        sleep(Duration::from_millis(1)).await;
        asked.set_capacity(0);
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((said(&*error), asked.calls()), ((code::RETRY_EXHAUSTED, ran), 1));
        let exhausted = find::<RetryExhausted>(&*error).unwrap();
        assert_eq!((exhausted.why(), exhausted.attempts()), (RetryStop::Deadline, 1));

        // It would start too late.
        let retry_after = Some(9 * SECOND);
        let busy = fails("http_429", Verdict::Transient { retry_after }, ran);
        let tool = ToolStack::default().service(ScriptedTool::script([busy]));
        let error = tool.oneshot(reads(5 * SECOND)).await.unwrap_err();
        assert_eq!(said(&*error), (code::RETRY_EXHAUSTED, ran));
        assert_eq!(find::<RetryExhausted>(&*error).unwrap().why(), RetryStop::Deadline);
    }
}

#[tokio::test(start_paused = true)]
async fn what_runs_when_the_deadline_passes_may_have_run() {
    let script = [fails("http_503", Verdict::TRANSIENT, Ran::No), Step::<ToolOutcome>::Hang];
    let tool = ScriptedTool::script(script);
    let (asked, tool) = (tool.handle(), ToolStack::default().service(tool));
    let error = tool.oneshot(due_in(5 * SECOND)).await.unwrap_err();
    assert_eq!((said(&*error), asked.calls()), ((code::TIMEOUT, Ran::Unknown), 2));
    assert_eq!(error.to_string(), "Call timeout after 5s");
}

#[tokio::test(start_paused = true)]
async fn calls_that_bring_no_deadline_get_the_stacks() {
    let hangs = || ScriptedTool::script([Step::<ToolOutcome>::Hang]);
    let call = || ToolCall::new("pay", Params::empty_object()).session("s");
    let stack = || ToolStack::builder().deadline(5 * SECOND).build().unwrap();
    for (own, ends) in [(None, 5), (Some(3), 3)] {
        let start = Instant::now();
        let call = own.map_or_else(call, |left| due_in(left * SECOND));
        let error = stack().service(hangs()).oneshot(call).await.unwrap_err();
        assert_eq!(
            (said(&*error), start.elapsed()),
            ((code::TIMEOUT, Ran::Unknown), ends * SECOND)
        );
    }
    // The attempt's own time is over sooner than a call's own, later deadline.
    let start = Instant::now();
    let error = stack().service(hangs()).oneshot(due_in(60 * SECOND)).await.unwrap_err();
    assert_eq!((said(&*error), start.elapsed()), ((code::TIMEOUT, Ran::Unknown), 10 * SECOND));

    let config = config::Config::from_json(r#"{"deadline_ms": 2000}"#).unwrap();
    let stack = ToolStack::builder().config(&config).build().unwrap();
    let start = Instant::now();
    stack.service(hangs()).oneshot(call()).await.unwrap_err();
    assert_eq!(start.elapsed(), 2 * SECOND);

    let error = ToolStack::builder().deadline(Duration::ZERO).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid timeout configuration: `deadline` is 0ns, must be 1ms to 24h"
    );
}

/// Its process was killed in mid-run, and the lease has two minutes to go.
#[tokio::test(start_paused = true)]
async fn a_repeat_of_a_call_whose_owner_vanished_waits_no_longer_than_it_may() {
    let records = Memory::new();
    let pay = || ToolCall::new("pay", Params::empty_object()).session("s").idempotency_key("k");
    let stack = |json: &str| {
        let config = config::Config::from_json(json).unwrap();
        let builder = ToolStack::builder().config(&config);
        builder.idempotency(|kept| kept.store(records.clone())).build().unwrap()
    };
    let mut dies = Box::pin(stack("{}").service(ScriptedTool::script([Step::Hang])).oneshot(pay()));
    assert!(poll_fn(|cx| Poll::Ready(dies.as_mut().poll(cx).is_pending())).await);
    std::mem::forget(dies);

    for (json, code, waits) in [
        ("{}", code::IDEMPOTENCY_IN_FLIGHT, 30),
        (r#"{"idempotency": {"max_wait_ms": 4000}}"#, code::IDEMPOTENCY_IN_FLIGHT, 4),
        (r#"{"deadline_ms": 6000}"#, code::TIMEOUT, 6),
    ] {
        let tool = ScriptedTool::script([answers("paid again")]);
        let asked = tool.handle();
        let start = Instant::now();
        let error = stack(json).service(tool).oneshot(pay()).await.unwrap_err();
        assert_eq!((said(&*error), start.elapsed()), ((code, Ran::Unknown), waits * SECOND));
        assert_eq!(asked.calls(), 0);
    }
}
