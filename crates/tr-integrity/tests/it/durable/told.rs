//! What observers are told, wherever a session is blocked, repaired, rolled back, abandoned or not
//! recorded; and what automatic repairs leave in the store.
use super::{
    FORMAT, Heard, Shaky, alone, both, call, found, process,
    shaky::Fate::{Kept, Lost},
};
use crate::common::{message, push_step, results, says, user};
use serde_json::json;
use std::sync::Arc;
use tower::{Layer, ServiceExt};
use tr_core::{
    BoxError, FailureInfo, Json, Ran, SessionAction as Action, ToolCall, ToolOutcome, Verdict,
};
use tr_integrity::{
    CycleState, IntegrityLayer, IntentNotRecorded, ModelCall, ModelGuardLayer, OUTCOME_UNKNOWN,
    SessionCorrupt, Sessions, WhenStoreFails,
};
use tr_testkit::tool::{Scripted, Step};

const HELLO: &str = r#"{"role":"assistant","content":"hello","stop_reason":"end_turn"}"#;
const FILTERED: &str = r#"{"type":"error","error":{"type":"content_filtered"}}"#;

fn repairing(store: &Shaky, auto_repair: bool) -> Sessions {
    let config = serde_json::from_value(json!({"autoRepair": auto_repair})).unwrap();
    Sessions::builder(FORMAT).config(config).store(store.clone()).build().unwrap()
}

/// Somebody pushes a result that no use asks for.
async fn corrupt(sessions: &Sessions) {
    sessions
        .change("s", |session, _| {
            session.push(message(FORMAT, user("hi")));
            session.push(message(FORMAT, says("hello")));
            session.push(message(FORMAT, results(FORMAT, &[("ghost", "42")]).remove(0)));
            session.push(message(FORMAT, user("so?")));
        })
        .await
        .unwrap();
}

async fn ask(
    sessions: &Sessions,
    heard: &Arc<Heard>,
    answer: &str,
) -> (Result<String, BoxError>, Vec<ModelCall>) {
    let model = Scripted::<ModelCall, String>::script([Step::Ok(answer.to_owned())]);
    let asked = model.handle();
    let layer = ModelGuardLayer::builder(sessions.clone()).observer(heard.clone()).build();
    let body = sessions.with("s", |session, _| session.transcript().to_json());
    let end = layer.layer(model).oneshot(ModelCall::new("s", body)).await;
    (end, asked.requests())
}

fn kinds(sessions: &Sessions) -> Vec<String> {
    sessions.with("s", |session, _| {
        session.incidents().map(|incident| incident.kind.clone().into_owned()).collect()
    })
}

#[tokio::test]
async fn an_automatic_repair_is_in_the_store() {
    let (store, heard) = (Shaky::default(), Arc::new(Heard::default()));
    let sessions = repairing(&store, true);
    corrupt(&sessions).await;
    let (end, sent) = ask(&sessions, &heard, HELLO).await;
    end.unwrap();
    assert_eq!(heard.take(), [("model".to_owned(), Action::Repaired)]);
    // The session is repaired as what was sent is, and so is what another process finds.
    let here = sessions.with("s", |session, _| session.transcript().to_json());
    assert_eq!(sent[0].body, here);
    assert!(here.contains("42"));
    assert_eq!(found(&store).await, here);
    assert_eq!(kinds(&sessions).iter().filter(|kind| *kind == "repair").count(), 1);
    // Nothing is left to repair.
    ask(&sessions, &heard, HELLO).await.0.unwrap();
    assert_eq!(heard.take(), []);
}

#[tokio::test]
async fn loading_validates_and_repairs_where_that_is_allowed() {
    let (store, heard) = (Shaky::default(), Arc::new(Heard::default()));
    corrupt(&process(store.clone())).await;

    let offered = repairing(&store, false);
    offered.observe(heard.clone());
    let validation = offered.load("s").await.unwrap();
    assert!(!validation.valid);
    assert_eq!(validation.orphaned_ids.unwrap(), [Box::<str>::from("ghost")]);
    let (end, sent) = ask(&offered, &heard, HELLO).await;
    let error = end.unwrap_err();
    assert!(error.is::<SessionCorrupt>() && sent.is_empty());
    assert_eq!(heard.take(), [("model".to_owned(), Action::Blocked)]);
    assert_eq!(kinds(&offered), ["blocked"]);

    let repaired = repairing(&store, true);
    repaired.observe(heard.clone());
    assert!(repaired.load("s").await.unwrap().valid);
    assert_eq!(heard.take(), [("model".to_owned(), Action::Repaired)]);
    assert!(!process(store.clone()).load("s").await.unwrap().valid, "not written yet");
    repaired.flush("s").await.unwrap();
    assert!(process(store.clone()).load("s").await.unwrap().valid);
    assert!(found(&store).await.contains("42"));
    // An open session is validated, too.
    assert!(repaired.load("s").await.unwrap().valid);
}

/// The agent never called one of its tools: with `autoRepair` the session goes on.
#[tokio::test]
async fn a_tail_that_nobody_drives_is_closed_where_repairs_are_allowed() {
    for auto_repair in [true, false] {
        let (store, heard) = (Shaky::default(), Arc::new(Heard::default()));
        let sessions = repairing(&store, auto_repair);
        sessions.with("s", |session, _| {
            session.push(message(FORMAT, user("go")));
            push_step(session, &["paid", "never called", "running"]);
        });
        let layer = IntegrityLayer::new(sessions.clone());
        let fine = ToolOutcome::success(Json::from_text("\"receipt 7\"").unwrap());
        let tool = Scripted::<ToolCall, ToolOutcome>::script([Step::Ok(fine), Step::Hang]);
        let asked = tool.handle();
        let tool = layer.layer(tool);
        tool.clone().oneshot(call("paid")).await.unwrap();
        let mut running = tokio_test::task::spawn(tool.oneshot(call("running")));
        while asked.calls() < 2 {
            assert!(running.poll().is_pending());
        }
        // While a tool runs, its step is not sent.
        let (end, sent) = ask(&sessions, &heard, HELLO).await;
        assert!(end.unwrap_err().is::<SessionCorrupt>() && sent.is_empty());
        assert_eq!(heard.actions(), [Action::Blocked]);
        drop(running);

        let (end, sent) = ask(&sessions, &heard, HELLO).await;
        if auto_repair {
            end.unwrap();
            assert_eq!(heard.actions(), [Action::Repaired]);
            let sent = &sent[0].body;
            assert!(sent.contains("receipt 7"), "{sent}");
            assert_eq!(sent.matches(OUTCOME_UNKNOWN).count(), 2, "{sent}");
            assert_eq!(found(&store).await, *sent);
        } else {
            assert!(end.unwrap_err().is::<SessionCorrupt>());
            assert_eq!(heard.actions(), [Action::Blocked]);
        }
    }
}

#[tokio::test]
async fn a_cycle_is_pending_until_its_intent_is_stored() {
    let (store, sessions) = alone();
    let tool = Scripted::<ToolCall, ToolOutcome>::script([Step::Hang]);
    let asked = tool.handle();
    let tool = IntegrityLayer::new(sessions.clone()).layer(tool);
    let mut running = tokio_test::task::spawn(tool.oneshot(call("a")));
    let mut seen = Vec::new();
    while asked.calls() == 0 {
        assert!(running.poll().is_pending());
        sessions.with("s", |session, _| {
            seen.extend(session.cycles().iter().map(|cycle| cycle.state));
        });
    }
    seen.dedup();
    assert_eq!(seen, [CycleState::Pending, CycleState::Executing]);
    // Who reads the log cannot tell what came after the intent.
    let other = process(store.clone());
    other.load("s").await.unwrap();
    let json = other.with("s", |session, _| session.transcript().to_json());
    assert!(json.contains(OUTCOME_UNKNOWN), "{json}");
}

#[tokio::test]
async fn what_becomes_of_cycles_is_told() {
    let (store, heard) = (Shaky::default(), Arc::new(Heard::default()));
    let sessions = process(store.clone());
    let layer = |when| {
        let layer = IntegrityLayer::builder().sessions(sessions.clone()).observer(heard.clone());
        layer.when_store_fails(when).build()
    };
    let refused = Step::err(FailureInfo::new("no", Ran::No, Verdict::Permanent));
    let fine = Step::Ok(ToolOutcome::default());
    let script = [refused, Step::Hang, fine.clone(), fine.clone()];
    let tool = Scripted::<ToolCall, ToolOutcome>::script(script);
    let asked = tool.handle();
    let strict = layer(WhenStoreFails::Refuse).layer(tool.clone());
    let lenient = layer(WhenStoreFails::Run).layer(tool);

    strict.clone().oneshot(call("a")).await.unwrap_err();
    assert_eq!(heard.take(), [("pay".to_owned(), Action::RolledBack)]);

    let mut dropped = tokio_test::task::spawn(strict.clone().oneshot(call("b")));
    while asked.calls() < 2 {
        assert!(dropped.poll().is_pending());
    }
    drop(dropped);
    assert_eq!(heard.actions(), [Action::Abandoned]);
    let mut early = tokio_test::task::spawn(strict.clone().oneshot(call("c")));
    assert!(early.poll().is_pending());
    drop(early);
    assert_eq!(heard.actions(), [Action::RolledBack]);

    sessions.flush("s").await.unwrap();
    store.next(&[Kept, Lost]);
    strict.clone().oneshot(call("d")).await.unwrap();
    assert_eq!(heard.actions(), [Action::NotRecorded], "its end");
    store.next(&[Kept, Lost]);
    let error = strict.clone().oneshot(call("e")).await.unwrap_err();
    assert!(error.is::<IntentNotRecorded>());
    assert_eq!(heard.actions(), [Action::NotRecorded, Action::RolledBack], "its intent");

    store.is_away(true);
    let elsewhere = process(store.clone());
    let layer = IntegrityLayer::builder().sessions(elsewhere).observer(heard.clone()).build();
    let unloaded = layer.layer(Scripted::<ToolCall, ToolOutcome>::script([]));
    unloaded.oneshot(call("f")).await.unwrap_err();
    assert_eq!(heard.actions(), [Action::NotRecorded], "its session");
    store.is_away(false);
    store.next(&[Lost]);
    lenient.oneshot(call("g")).await.unwrap();
    assert_eq!(heard.actions().first(), Some(&Action::NotRecorded));
    let noted = kinds(&sessions).iter().filter(|kind| *kind == "not_recorded").count();
    assert_eq!(noted, 3);
}

#[tokio::test]
async fn what_a_dead_process_has_left_is_told() {
    let (store, heard) = (Shaky::default(), Arc::new(Heard::default()));
    let dead = process(store.clone());
    dead.change("s", |session, now| {
        for (id, starts) in [("a", true), ("b", false)] {
            let cycle = tr_core::CycleRef { session: "s", tool_use_id: id, name: id, input: "{}" };
            let id = session.begin_cycle(&cycle, now);
            if starts {
                session.start_cycle(id);
            }
        }
    })
    .await
    .unwrap();
    let sessions = process(store.clone());
    sessions.observe(heard.clone());
    // Given twice, and by each of two stacks: told once.
    sessions.observe(heard.clone());
    let (first, second) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
    sessions.observe_by_default(first.clone());
    sessions.observe_by_default(second.clone());
    sessions.load("s").await.unwrap();
    assert_eq!((first.take().len(), second.take().len()), (2, 0));
    let told = [("a".to_owned(), Action::Abandoned), ("b".to_owned(), Action::RolledBack)];
    assert_eq!(heard.take(), told);
}

#[tokio::test]
async fn what_becomes_of_the_models_calls_is_told() {
    let (store, heard) = (Shaky::default(), Arc::new(Heard::default()));
    let sessions = process(store.clone());
    sessions.with("s", |session, _| session.push(message(FORMAT, user("hi"))));
    ask(&sessions, &heard, FILTERED).await.0.unwrap_err();
    assert_eq!(heard.take(), [("model".to_owned(), Action::RolledBack)]);
    store.next(&[Lost]);
    ask(&sessions, &heard, HELLO).await.0.unwrap_err();
    assert_eq!(heard.actions(), [Action::NotRecorded]);
    sessions.flush("s").await.unwrap();
    store.next(&[Kept, Lost]);
    ask(&sessions, &heard, HELLO).await.0.unwrap();
    assert_eq!(heard.actions(), [Action::NotRecorded]);
}

/// Another process was first, and the call is refused: the agent's use is answered in what that left.
#[tokio::test]
async fn a_call_that_loses_its_session_is_answered_in_the_one_that_is_there() {
    let (_, one, other) = both();
    one.change("s", |session, _| {
        session.push(message(FORMAT, user("go")));
        push_step(session, &["a"]);
    })
    .await
    .unwrap();
    other.load("s").await.unwrap();
    one.change("s", |session, now| session.checkpoint(tr_integrity::Operation::Manual, now))
        .await
        .unwrap();
    other.with("s", |session, now| session.checkpoint(tr_integrity::Operation::Manual, now));
    let tool = Scripted::<ToolCall, ToolOutcome>::script([]);
    let error =
        IntegrityLayer::new(other.clone()).layer(tool).oneshot(call("a")).await.unwrap_err();
    assert!(error.is::<IntentNotRecorded>());
    let heard = Arc::new(Heard::default());
    let (end, sent) = ask(&other, &heard, HELLO).await;
    end.unwrap();
    assert!(sent[0].body.contains(&error.to_string()), "{}", sent[0].body);
}
