//! Calls of tools: the intent before the tool, use and result before the answer.
use super::{
    FORMAT, Heard, Shaky, alone, call, found, process, says,
    shaky::Fate::{Kept, Lost, Refused, Unanswered},
    text, tool,
};
use crate::common::{message, user};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};
use tower::{Layer, Service, ServiceExt};
use tr_core::{
    Answer, CycleRef, End, Json, Ran, ResponsePolicy, SessionAction, ToolCall, ToolOutcome,
    TranscriptPolicy, failure_info, find,
};
use tr_integrity::{
    IntegrityLayer, IntentNotRecorded, OUTCOME_UNKNOWN, Session, WhenStoreFails,
    store::{StoreError, StoreErrorKind},
};
use tr_testkit::{
    drops,
    laws::Laws,
    tool::{Scripted, Step},
};

fn fine() -> ToolOutcome {
    ToolOutcome::success(Json::from_text("\"fine\"").unwrap())
}

#[tokio::test]
async fn intent_and_end_are_stored_before_tool_and_answer() {
    let (store, sessions) = alone();
    let during = Arc::new(Mutex::new(String::new()));
    let tool = tool(&sessions, || {
        let (store, during) = (store.clone(), during.clone());
        async move {
            let found = found(&store).await;
            *during.lock().unwrap() = found;
        }
    });
    tool.oneshot(call("a")).await.unwrap();
    // Who looked while the tool ran saw that it may have run.
    let during = during.lock().unwrap().clone();
    assert_eq!(during.matches(OUTCOME_UNKNOWN).count(), 1, "{during}");
    let after = found(&store).await;
    assert_eq!(after, text(&sessions));
    assert!(after.contains("answer a;") && !after.contains(OUTCOME_UNKNOWN), "{after}");
    assert_eq!(store.appends(), 2);
}

#[tokio::test]
async fn a_message_of_the_agent_goes_along_with_the_next_intent() {
    let (store, sessions) = alone();
    sessions.with("s", |session, _| {
        session.push(message(FORMAT, user("pay it")));
    });
    assert!(!found(&store).await.contains("pay it"));
    tool(&sessions, || async {}).oneshot(call("a")).await.unwrap();
    let after = found(&store).await;
    assert!(after.find("pay it").unwrap() < after.find("answer a;").unwrap(), "{after}");
    assert_eq!(store.appends(), 2);
}

#[tokio::test]
async fn a_tool_whose_intent_is_not_stored_does_not_run() {
    for (fate, kind, is_final) in [
        (Lost, StoreErrorKind::Unreachable, false),
        (Unanswered, StoreErrorKind::Uncertain, false),
        (Refused, StoreErrorKind::Refused, true),
    ] {
        let (store, sessions) = alone();
        let runs = Arc::new(AtomicUsize::new(0));
        let tool = tool(&sessions, || {
            let runs = runs.clone();
            async move {
                runs.fetch_add(1, SeqCst);
            }
        });
        store.next(&[fate]);
        let error = tool.clone().oneshot(call("a")).await.unwrap_err();
        assert_eq!(error.downcast_ref::<IntentNotRecorded>().unwrap().ran(), Ran::No);
        let facts = failure_info(&*error).unwrap();
        assert_eq!((facts.ran(), facts.code()), (Ran::No, "store_unavailable"));
        assert_eq!(facts.verdict().is_transient(), !is_final);
        let cause = find::<StoreError>(&*error);
        assert_eq!(cause.map(StoreError::kind), Some(kind));
        assert_eq!(runs.load(SeqCst), 0);
        // Nothing of it is left, and the session goes on once the store is back.
        assert_eq!(text(&sessions), "[]");
        tool.oneshot(call("b")).await.unwrap();
        let after = found(&store).await;
        assert!(!after.contains("\"a\"") && after.contains("answer b;"), "{after}");
        assert_eq!(after, text(&sessions));
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_loaded_runs_no_tool() {
    let store = Shaky::default();
    store.is_away(true);
    let sessions = process(store.clone());
    let error = tool(&sessions, || async {}).oneshot(call("a")).await.unwrap_err();
    assert_eq!(failure_info(&*error).unwrap().ran(), Ran::No);
    store.is_away(false);
    tool(&sessions, || async {}).oneshot(call("a")).await.unwrap();
    assert!(found(&store).await.contains("answer a;"));
}

#[tokio::test]
async fn a_tool_may_be_told_to_run_without_its_store() {
    let (store, sessions) = alone();
    says(&sessions, "hi").await;
    let layer = IntegrityLayer::builder()
        .sessions(sessions.clone())
        .when_store_fails(WhenStoreFails::Run)
        .build();
    let tool = layer
        .layer(Scripted::<ToolCall, ToolOutcome>::script([Step::Ok(fine())]).then_repeat_last());
    store.next(&[Lost, Lost]);
    let outcome = tool.clone().oneshot(call("a")).await.unwrap();
    assert!(!outcome.recorded());
    assert!(text(&sessions).contains("fine"));
    assert!(!found(&store).await.contains("fine"));
    sessions.flush("s").await.unwrap();
    assert_eq!(found(&store).await, text(&sessions));

    // What cannot even be loaded is not recorded at all, and says so.
    store.is_away(true);
    let outcome = tool.oneshot(call("b").session("other")).await.unwrap();
    assert!(!outcome.recorded());
}

#[tokio::test]
async fn an_answer_that_is_not_stored_is_given_and_says_so() {
    for fate in [Lost, Unanswered, Refused] {
        let (store, sessions) = alone();
        let seen = Arc::new(Heard::default());
        let layer =
            IntegrityLayer::builder().sessions(sessions.clone()).observer(seen.clone()).build();
        let tool = layer.layer(
            Scripted::<ToolCall, ToolOutcome>::script([Step::Ok(fine())]).then_repeat_last(),
        );
        store.next(&[Kept, fate]);
        let outcome = tool.clone().oneshot(call("a")).await.unwrap();
        assert!(!outcome.recorded());
        assert_eq!(seen.actions(), [SessionAction::NotRecorded]);
        // Here it is recorded, and it is written with whatever is written next.
        assert!(text(&sessions).contains("fine"));
        let outcome = tool.oneshot(call("b")).await.unwrap();
        assert!(outcome.recorded());
        let after = found(&store).await;
        assert_eq!(after, text(&sessions));
        assert_eq!(after.matches("fine").count(), 2, "{after}");
    }
}

/// A reply that was lost: what is sent again is recognized, so nothing is there twice.
#[tokio::test]
async fn what_was_stored_without_a_reply_is_not_doubled() {
    let (store, sessions) = alone();
    store.next(&[Unanswered, Unanswered, Unanswered]);
    let tool = tool(&sessions, || async {});
    tool.clone().oneshot(call("a")).await.unwrap_err();
    tool.clone().oneshot(call("b")).await.unwrap_err();
    tool.clone().oneshot(call("c")).await.unwrap_err();
    tool.oneshot(call("d")).await.unwrap();
    let after = found(&store).await;
    assert_eq!(after.matches("tool_use_id").count(), 1, "{after}");
    assert!(after.contains("answer d;"));
}

#[tokio::test(start_paused = true)]
async fn calls_dropped_at_any_await_leave_no_part_of_a_cycle() {
    let (store, sessions) = alone();
    let tool = Scripted::<ToolCall, ToolOutcome>::by(|n, _| match n % 2 {
        0 => Step::after(std::time::Duration::from_millis(5), Step::Ok(fine())),
        _ => Step::Ok(fine()),
    });
    let asked = tool.handle();
    let tool = IntegrityLayer::new(sessions.clone()).layer(tool);
    let mut n = 0;
    let report = drops::at_random(17, 600, || {
        n += 1;
        tool.clone().oneshot(call(&format!("toolu_{n}")))
    })
    .await;
    assert_eq!(report.finished + report.dropped, 600);
    assert_eq!(report.stuck, 0);
    assert_eq!((asked.in_flight(), asked.waiting()), (0, 0));
    // At any moment, the process may die: every call that ran is there once, whole.
    let after = found(&store).await;
    let used = after.matches("\"type\":\"tool_use\"").count();
    assert_eq!(after.matches("tool_use_id").count(), used);
    let ran = asked.calls();
    assert!(used <= ran + 600 - report.finished as usize && used >= report.finished as usize);
    // And in the process that lives on, all that ran is there, and nothing else.
    sessions.change("s", Session::recover).await.unwrap();
    let here = text(&sessions);
    assert_eq!(here.matches("tool_use_id").count(), ran);
    assert_eq!(found(&store).await, here);
}

#[tokio::test]
async fn calls_at_once_share_their_writes() {
    let (store, sessions) = alone();
    let tool = tool(&sessions, || async { tokio::task::yield_now().await });
    let calls: Vec<_> =
        (0..32).map(|n| tokio::spawn(tool.clone().oneshot(call(&format!("t{n}"))))).collect();
    for call in calls {
        assert!(call.await.unwrap().unwrap().recorded());
    }
    let after = found(&store).await;
    assert_eq!(after, text(&sessions));
    (0..32).for_each(|n| assert!(after.contains(&format!("answer t{n};"))));
    assert!(store.appends() < 20, "{} writes for 32 calls", store.appends());
}

#[derive(Clone, Copy, Debug)]
struct Numbers;

impl ResponsePolicy<u64> for Numbers {}

impl TranscriptPolicy<u64, u64> for Numbers {
    fn cycle<'r>(&self, _: &'r u64) -> Option<CycleRef<'r>> {
        Some(CycleRef { session: "s", tool_use_id: "x", name: "n", input: "{}" })
    }

    fn answer<'r>(&self, end: End<'r, u64>) -> Answer<'r> {
        Answer { content: format!("{end:?}").into(), is_error: end.is_err(), ran: Ran::Yes }
    }
}

#[test]
fn the_layer_keeps_the_laws_with_a_store() {
    Laws::new(|n| n, |n: &u64| n * n).check(|tool| {
        let layer = IntegrityLayer::builder().sessions(process(Shaky::default()));
        layer.policy(Numbers).build().layer(tool)
    });
}

/// What is ready is called, and its clone stays.
#[tokio::test]
async fn the_service_that_is_ready_is_the_one_that_is_called() {
    let tool = Scripted::<ToolCall, ToolOutcome>::script([Step::Ok(fine())]).then_repeat_last();
    let asked = tool.handle();
    let mut tool = IntegrityLayer::new(process(Shaky::default())).layer(tool);
    for id in ["a", "b"] {
        tool.ready().await.unwrap().call(call(id)).await.unwrap();
    }
    assert!(asked.breaches().is_empty());
    assert_eq!(asked.calls(), 2);
}

#[test]
fn a_future_is_as_thread_safe_as_its_tool() {
    fn is_send(_: &impl Send) {}
    let tool = Scripted::<ToolCall, ToolOutcome>::script([]);
    is_send(&IntegrityLayer::new(process(Shaky::default())).layer(tool).call(call("a")));
}
