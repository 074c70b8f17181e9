//! What envelopes say of attempts, time and records, for every kind of end.
use crate::common::Notes;
use std::time::Duration;
use tool_reliability::{Finished, Measured, Mode, Rollout, ToolStack};
use tower::ServiceExt;
use tr_core::{BreakerState, Effect, MatchedOn, Params, Ran, ToolCall, ToolOutcome, Verdict};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails, reports},
    tool::Step,
};
use tr_wire::bs_tim_5::ToolResultEnvelope;

type Tool = Measured<tool_reliability::Guarded<ScriptedTool>>;

fn around(stack: &ToolStack, script: impl IntoIterator<Item = Step<ToolOutcome>>) -> Tool {
    Measured::new(stack.service(ScriptedTool::script(script).then_repeat_last()))
}

async fn finished(tool: &Tool, call: ToolCall) -> Finished {
    let Ok(finished) = tool.clone().oneshot(call).await;
    finished
}

async fn envelope(tool: &Tool, call: ToolCall) -> ToolResultEnvelope {
    finished(tool, call).await.envelope()
}

fn read(turn: &str) -> ToolCall {
    ToolCall::new("read", Params::empty_object())
        .effect(Effect::ReadOnly)
        .request_id("r")
        .session("s")
        .turn(turn)
}

fn down() -> Step<ToolOutcome> {
    fails("http_503", Verdict::TRANSIENT, Ran::Unknown)
}

#[tokio::test(start_paused = true)]
async fn attempts_and_time_are_counted_for_every_end() {
    let stack = ToolStack::builder()
        .breaker(|breaker| breaker.consecutive_failures(5).seed(1))
        .retry(|retry| retry.seed(1))
        .build()
        .unwrap();
    let tool = around(&stack, [answers("ok")]);
    let said = envelope(&tool, read("1")).await;
    assert_eq!((said.attempts, said.duration_ms, said.retried_by), (1, 0.0, None));

    let tool = around(&stack, [down(), down(), answers("ok")]);
    let said = envelope(&tool, read("2")).await;
    assert_eq!((said.attempts, said.retried_by.map(|all| all.len())), (3, Some(2)));
    assert!(said.duration_ms > 0.0, "the delays count");

    let said =
        envelope(&around(&stack, [reports("bad", "Missing required parameter: path")]), read("3"))
            .await;
    assert_eq!(said.attempts, 1);

    // Four attempts fail; at the fifth failure the breaker opens, and ends the retrying.
    let tool = around(&stack, [down()]);
    let said = envelope(&tool, read("4")).await;
    assert_eq!((said.attempts, said.retried_by.map(|all| all.len())), (4, Some(3)));
    assert!(said.duration_ms > 0.0);
    let said = envelope(&tool, read("5")).await;
    assert_eq!((said.attempts, said.retried_by.map(|all| all.len())), (1, Some(1)));
    assert_eq!(said.error.unwrap().breaker_state, Some(BreakerState::Open));

    // Refused: by the breaker, and by the loop guard.
    let said = envelope(&tool, read("6")).await;
    assert_eq!((said.attempts, said.duration_ms, said.status.as_str()), (0, 0.0, "circuit_open"));
    let tool = around(&ToolStack::default(), [reports("bad", "Missing required parameter: path")]);
    for attempts in [1, 1, 0] {
        let said = envelope(&tool, read("t")).await;
        assert_eq!((said.attempts, said.error.is_some()), (attempts, true));
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_cut_off_counts_with_its_time() {
    let stack = ToolStack::builder()
        .attempt_timeout(|timeout| timeout.after(Duration::from_secs(2)))
        .build()
        .unwrap();
    let said = envelope(&around(&stack, [Step::Hang]), read("1").effect(Effect::Mutating)).await;
    assert_eq!((said.attempts, said.duration_ms, said.status.as_str()), (1, 2_000.0, "timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_from_the_record_and_had_no_attempt() {
    let pay = || read("1").effect(Effect::Mutating).idempotency_key("k");
    for end in [answers("ok"), reports("declined", "card declined")] {
        let tool = around(&ToolStack::default(), [end]);
        for (attempts, from_cache) in [(1, false), (0, true)] {
            let said = envelope(&tool, pay()).await;
            assert_eq!((said.attempts, said.from_cache), (attempts, from_cache));
        }
    }
    // An error that no outcome tells.
    let tool = around(&ToolStack::default(), [fails("declined", Verdict::Permanent, Ran::Yes)]);
    let first = envelope(&tool, pay()).await;
    assert_eq!((first.attempts, first.from_cache, first.cache), (1, false, None));
    tokio::time::advance(Duration::from_secs(3)).await;
    let finished = finished(&tool, pay()).await;
    let again = finished.envelope();
    assert!(again.error.is_some() && again.from_cache);
    let hit = again.cache.unwrap();
    assert_eq!((again.attempts, hit.matched_on, hit.age_ms), (0, MatchedOn::Completed, 3_000.0));
    let folded = tool_reliability::errors_as_outcomes::outcome(&*finished.end.unwrap_err());
    assert!(folded.from_cache());

    // Who waits for another's run gets its failure, and made no attempt.
    let failing = || fails("declined", Verdict::Permanent, Ran::Yes);
    let stack = ToolStack::default();
    let tool = around(&stack, [Step::after(Duration::from_secs(1), failing())]);
    let other = || pay().idempotency_key("other");
    let (leads, waits) = tokio::join!(envelope(&tool, other()), envelope(&tool, other()));
    assert_eq!((leads.attempts, leads.from_cache), (1, false));
    assert_eq!((waits.attempts, waits.from_cache), (0, true));
    assert_eq!(waits.cache.unwrap().matched_on, MatchedOn::Inflight);
}

#[tokio::test(start_paused = true)]
async fn the_bare_tool_counts_too() {
    for (mode, attempts) in
        [(Mode::Off, 1), (Mode::Observe, 1), (Mode::Shadow, 1), (Mode::Enforce, 4)]
    {
        let stack = ToolStack::builder().rollout(Rollout::new(mode)).build().unwrap();
        let tool = around(&stack, [down()]);
        assert_eq!(envelope(&tool, read("1")).await.attempts, attempts, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_s_key_is_a_hook_s_and_loses_to_the_caller_s() {
    let stack = ToolStack::builder().hook(Notes::giving("k")).build().unwrap();
    let tool = ScriptedTool::script([answers("ok")]).then_repeat_last();
    let handle = tool.handle();
    let tool = Measured::new(stack.service(tool));
    let pay = || read("1").effect(Effect::Mutating);
    for (call, runs) in [
        (pay(), 1),
        (pay(), 1),
        // The same text from the caller is another key.
        (pay().idempotency_key("k"), 2),
        (pay().idempotency_key("k"), 2),
        // The caller's own key holds, whatever the hook sets.
        (pay().idempotency_key("mine"), 3),
        (pay().idempotency_key("mine"), 3),
        (pay(), 3),
    ] {
        finished(&tool, call).await.end.unwrap();
        assert_eq!(handle.calls(), runs);
    }
    let seen = handle.requests();
    let of = |n: usize| {
        let given = &seen[n].parts().idempotency;
        (given.key.clone().unwrap(), given.from_hook)
    };
    assert_eq!(
        [of(0), of(1), of(2)],
        [("k".into(), true), ("k".into(), false), ("mine".into(), false)]
    );
}
