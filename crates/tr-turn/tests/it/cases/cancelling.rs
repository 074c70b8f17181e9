//! Cancellation by id, of the turn, and of calls with records.
use super::*;
use tool_reliability::idempotency::RecordState;
use tr_config::ToolCatalog;
use tr_core::{Ran, Verdict};
use tr_testkit::calls::fails;
use tr_turn::{CutShort, Outcome, Turns};

#[tokio::test(start_paused = true)]
async fn ut_09_calls_are_cancelled_by_their_ids() {
    let bench = Bench::new([("slow", vec![Step::Hang]), ("quick", ok()), ("next", ok())]);
    let draft = Draft::new("t")
        .call(reads("slow").cancellation_id("stop-1"))
        .call(reads("slow").named("queued").after("quick").cancellation_id("stop-1"))
        .call(reads("quick"))
        .call(reads("next").after("slow"));
    let turn = bench.turns.run(draft.check(&Tools::any()).unwrap());
    let canceller = turn.canceller();
    let cancel = async {
        tokio::time::sleep(seconds(2)).await;
        assert!(!canceller.cancel("unknown"));
        assert!(canceller.cancel("stop-1"));
    };
    let (report, ()) = tokio::join!(turn, cancel);
    assert_eq!((report.took, report.cut_short), (seconds(2), None));
    let slow = report.call("slow").unwrap();
    assert_eq!((slow.outcome, slow.ran), (Outcome::Cancelled, Ran::Unknown));
    assert_eq!(report.call("next").unwrap().outcome, Outcome::Skipped);
    assert_eq!(report.call("quick").unwrap().outcome, Outcome::Success);
    // The call carries the id by which it can be cancelled, under the required name.
    let id = bench.handle.requests()[0].parts().cancellation_id.clone();
    assert_eq!(id.as_deref(), Some("stop-1"));
    assert_eq!((bench.handle.in_flight(), bench.handle.cancelled()), (0, 2));
    // The user's own cancellation is not escalated.
    assert_eq!(report.escalated().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn ut_09_a_call_cancelled_before_it_starts_never_runs() {
    let bench = Bench::new([("slow", vec![after(5, answers("ok"))])]);
    let draft =
        Draft::new("t").call(reads("slow")).call(reads("slow").named("later").after("slow"));
    let turn = bench.turns.run(draft.check(&Tools::any()).unwrap());
    assert!(turn.canceller().cancel("later"));
    let report = turn.await;
    let later = report.call("later").unwrap();
    assert_eq!((later.outcome, later.ran, later.attempts), (Outcome::Cancelled, Ran::No, 0));
    assert_eq!(bench.handle.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_ends_at_once_with_what_there_is() {
    let bench = Bench::new([("slow", vec![Step::Hang]), ("quick", ok())]);
    let draft = Draft::new("t")
        .call(reads("quick"))
        .call(reads("slow"))
        .call(reads("quick").named("after").after("slow"));
    let turn = bench.turns.run(draft.check(&Tools::any()).unwrap());
    let canceller = turn.canceller();
    let cancel = async {
        tokio::time::sleep(seconds(2)).await;
        canceller.cancel_turn();
    };
    let (report, ()) = tokio::join!(turn, cancel);
    assert_eq!((report.took, report.cut_short), (seconds(2), Some(CutShort::Cancelled)));
    assert_eq!(report.summary, "Completed quick, but slow and after were cancelled");
    assert_eq!(report.call("after").unwrap().ran, Ran::No);
}

/// A dropped call with a key runs to its end for its record; a cancelled one does not.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_call_with_a_key_ends_inside_of_the_stack_too() {
    let bench = Bench::with_timeout(1000, [("pay", vec![after(60, answers("paid"))])]);
    let pay = || tr_turn::Call::new("pay").effect(Effect::Mutating).idempotency_key("order-42");
    let draft = Draft::new("t").session("s").call(pay());
    let turn = bench.turns.run(draft.check(&Tools::any()).unwrap());
    let canceller = turn.canceller();
    let cancel = async {
        tokio::time::sleep(seconds(2)).await;
        assert!(canceller.cancel("pay"));
    };
    let (report, ()) = tokio::join!(turn, cancel);
    assert_eq!((report.calls[0].outcome, report.calls[0].ran), (Outcome::Cancelled, Ran::Unknown));
    // The user has to know that it may have run.
    let decision = report.calls[0].decision.unwrap();
    assert_eq!(decision.reason, "Cancelled by the caller, and the tool may have run");
    let told = "pay was cancelled: Cancelled by the caller (it may have run)";
    assert!(has(&report, "pay", told), "{}", report.trace);
    tokio::time::sleep(seconds(600)).await;
    assert_eq!((bench.handle.cancelled(), bench.handle.completed()), (1, 0));
    // It may have run, so it never runs again.
    let report = bench.run(Draft::new("t2").session("s").call(pay())).await;
    assert_eq!((bench.handle.calls(), report.calls[0].ran), (1, Ran::Unknown));
}

/// Between two attempts nothing runs, so there is nothing to wait for, and nothing in doubt.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_call_with_a_key_ends_at_once_between_two_attempts() {
    let busy = |ran| {
        let retry_after = Some(seconds(60));
        fails("http_503", Verdict::Transient { retry_after }, ran)
    };
    let ends = [(Ran::No, RecordState::Cancelled, 2), (Ran::Unknown, RecordState::Unknown, 1)];
    for (ran, state, calls) in ends {
        let bench = Bench::new([("pay", vec![busy(ran), answers("paid")])]);
        let pay = || {
            let pay = tr_turn::Call::new("pay").effect(Effect::Mutating);
            Draft::new("t").session("s").call(pay.idempotency_key("order-42"))
        };
        // The tool allows a retry although it may have run.
        let catalog = r#"{"tools": {"pay": {"effect": "mutating", "retry_safe": true}}}"#;
        let tools = Tools::any().catalog(ToolCatalog::from_json(catalog).unwrap());
        let turn = bench.turns.run(pay().check(&tools).unwrap());
        let canceller = turn.canceller();
        let cancel = async {
            tokio::time::sleep(seconds(2)).await;
            assert!(canceller.cancel("pay"));
        };
        let (report, ()) = tokio::join!(turn, cancel);
        assert_eq!((report.took, report.calls[0].outcome), (seconds(2), Outcome::Cancelled));
        assert_eq!((report.calls[0].ran, report.calls[0].attempts), (ran, 1));
        tokio::task::yield_now().await;
        let states: Vec<_> =
            bench.stack.records().records().iter().map(|record| record.state).collect();
        assert_eq!(states, [state], "long before the next attempt");
        bench.run(pay()).await;
        assert_eq!(bench.handle.calls(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_dropped_drops_its_calls() {
    let tool = tr_testkit::calls::ScriptedTool::script([Step::Hang]).then_repeat_last();
    let (handle, turns) = (tool.handle(), Turns::new(tool));
    let draft = Draft::new("t").call(reads("slow")).call(reads("slow").named("other"));
    let plan = draft.check(&Tools::any()).unwrap();
    let turn = turns.run(plan.clone());
    let _ = tokio::time::timeout(seconds(3), turn).await.unwrap_err();
    assert_eq!((handle.calls(), handle.in_flight()), (2, 0));
    // At its end it has dropped them, even while the turn is still held.
    let held =
        Draft::new("t").call(reads("slow").timeout(seconds(1))).call(reads("slow").named("o"));
    let held = held.limits(tr_turn::Limits { timeout: seconds(3), ..Default::default() });
    let mut turn = Box::pin(turns.run(held.check(&Tools::any()).unwrap()));
    (&mut turn).await;
    assert_eq!((handle.calls(), handle.in_flight()), (4, 0));
    drop(turn);
    // One that was never polled has not begun.
    drop(turns.run(plan));
    assert_eq!(handle.calls(), 4);
}

/// A turn needs no stack: any tool service will do.
#[tokio::test(start_paused = true)]
async fn a_panic_is_one_call_s_misfortune() {
    let tool =
        tr_testkit::tool::Scripted::by(|_, call: &ToolCall| match call.parts().tool.label() {
            "bad" => Step::Panic,
            "worse" => Step::PanicInCall,
            _ => answers("ok"),
        });
    let draft = ["bad", "worse", "good"]
        .into_iter()
        .fold(Draft::new("t"), |draft, tool| draft.call(reads(tool)));
    let report = Turns::new(tool).run(draft.check(&Tools::any()).unwrap()).await;
    let ends: Vec<_> = report.calls.iter().map(|call| (call.outcome, call.ran)).collect();
    let failed = (Outcome::Failed, Ran::Unknown);
    assert_eq!(ends, [failed, failed, (Outcome::Success, Ran::Yes)]);
    assert_eq!(&*report.calls[0].failure.as_ref().unwrap().code, "panicked");
}

#[tokio::test(start_paused = true)]
async fn a_turn_can_be_a_task_of_its_own() {
    let bench = Bench::new([("quick", ok())]);
    let plan = Draft::new("t").call(reads("quick")).check(&Tools::any()).unwrap();
    assert!(tokio::spawn(bench.turns.run(plan)).await.unwrap().is_complete());
}

/// A replay is no attempt, and neither is a refusal.
#[tokio::test(start_paused = true)]
async fn attempts_are_what_reached_a_tool() {
    let bench = Bench::new([("pay", ok())]);
    let run = async |cents: u32| {
        let pay = tr_turn::Call::new("pay").effect(Effect::Mutating).idempotency_key("order-42");
        let pay = pay.params(serde_json::json!({ "cents": cents }));
        let report = bench.run(Draft::new("t").session("s").call(pay)).await;
        (report.calls[0].outcome, report.calls[0].attempts, report.calls[0].ran)
    };
    assert_eq!(run(5).await, (Outcome::Success, 1, Ran::Yes));
    assert_eq!(run(5).await, (Outcome::Success, 0, Ran::Yes));
    // The same key with other params is a conflict.
    assert_eq!(run(6).await, (Outcome::Failed, 0, Ran::No));
    assert_eq!(bench.handle.calls(), 1);
}
