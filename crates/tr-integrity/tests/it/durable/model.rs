//! Calls of the model over a store: the checkpoint before the call, the end before the answer.
use super::{FORMAT, Heard, alone, both, found, process, says, shaky::Fate, text};
use crate::common::{message, user};
use std::{future::poll_fn, sync::Arc};
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{BoxError, DefaultPolicy, Ran, SessionAction, Verdict, code, failure_info, find};
use tr_integrity::{
    BodyOf, BodyWatch, CheckpointNotRecorded, ContentFiltered, ModelCall, ModelEnd,
    ModelGuardLayer, Operation, Session, Sessions, WhenStoreFails,
    store::{Memory, StoreError},
};
use tr_testkit::{
    drops,
    laws::Laws,
    tool::{Scripted, Step},
};

const HELLO: &str = r#"{"role":"assistant","content":"hello","stop_reason":"end_turn"}"#;
const BLOCKED: &str = r#"{"content":[{"type":"text","text":"I"}],"stop_reason":"refusal"}"#;

fn ask() -> ModelCall {
    ModelCall::new("s", r#"{"messages":[{"role":"user","content":"first"}]}"#)
}

fn model(answer: &str) -> Scripted<ModelCall, String> {
    Scripted::script([Step::Ok(answer.to_owned())]).then_repeat_last()
}

/// Asks a model that answers so, and says something in the session meanwhile.
async fn ask_and_say(sessions: &Sessions, answer: &str) -> Result<String, BoxError> {
    let (meanwhile, answer) = (sessions.clone(), answer.to_owned());
    let model = service_fn(move |_: ModelCall| {
        let (meanwhile, answer) = (meanwhile.clone(), answer.clone());
        async move {
            says(&meanwhile, "meanwhile").await;
            Ok::<_, BoxError>(answer)
        }
    });
    ModelGuardLayer::new(sessions.clone()).layer(model).oneshot(ask()).await
}

#[tokio::test]
async fn the_checkpoint_is_in_the_store_before_the_model_is_called() {
    let (store, sessions) = alone();
    says(&sessions, "first").await;
    let seen = store.clone();
    let model = service_fn(move |_: ModelCall| {
        let another = process(seen.store.clone());
        async move {
            another.load("s").await?;
            another.with("s", |session, _| {
                let active = session.active().expect("the call is on its way");
                assert_eq!((active.operation, active.message_index), (Operation::ApiCall, 1));
            });
            Ok::<_, BoxError>(HELLO.to_owned())
        }
    });
    ModelGuardLayer::new(sessions).layer(model).oneshot(ask()).await.unwrap();
    let another = process(store.store.clone());
    another.load("s").await.unwrap();
    another.with("s", |session, _| {
        assert!(session.active().is_none() && session.latest().unwrap().is_committed());
    });
}

#[tokio::test]
async fn a_rollback_is_in_the_store_before_the_user_is_told() {
    let (store, sessions) = alone();
    says(&sessions, "first").await;
    let before = found(&store).await;
    let error = ask_and_say(&sessions, BLOCKED).await.unwrap_err();
    assert_eq!(error.to_string(), "Content filter triggered. Rolled back 1 messages.");
    assert_eq!(found(&store).await, before);

    ask_and_say(&sessions, HELLO).await.unwrap();
    assert!(found(&store).await.contains("meanwhile"));
}

#[tokio::test]
async fn without_its_checkpoint_the_model_is_not_called() {
    for (fate, verdict) in [(Fate::Lost, Verdict::TRANSIENT), (Fate::Refused, Verdict::Permanent)] {
        let (store, sessions) = alone();
        says(&sessions, "first").await;
        store.next(&[fate]);
        let model = model(HELLO);
        let asked = model.handle();
        let guarded = ModelGuardLayer::new(sessions.clone()).layer(model);
        let error = guarded.oneshot(ask()).await.unwrap_err();
        assert!(error.is::<CheckpointNotRecorded>() && find::<StoreError>(&*error).is_some());
        let known = failure_info(&*error).unwrap();
        assert_eq!((known.code(), known.ran()), (code::STORE_UNAVAILABLE, Ran::No));
        assert_eq!((known.verdict(), asked.calls()), (verdict, 0));
        sessions.with("s", |session, _| assert_eq!(session.checkpoints(), []));
    }
}

#[tokio::test]
async fn it_may_be_called_all_the_same() {
    let (store, sessions) = alone();
    says(&sessions, "first").await;
    let layer = ModelGuardLayer::builder(sessions.clone()).when_store_fails(WhenStoreFails::Run);
    let guarded = layer.build().layer(model(BLOCKED));
    store.next(&[Fate::Lost, Fate::Lost]);
    let error = guarded.clone().oneshot(ask()).await.unwrap_err();
    assert!(error.is::<ContentFiltered>());
    // Not even the session can be had.
    let away = process(store.clone());
    store.is_away(true);
    let layer = ModelGuardLayer::builder(away).when_store_fails(WhenStoreFails::Run);
    let error = layer.build().layer(model(BLOCKED)).oneshot(ask()).await.unwrap_err();
    assert_eq!(error.to_string(), "Content filter triggered.");
}

#[tokio::test]
async fn an_end_that_is_not_recorded_keeps_no_answer_back() {
    for answer in [HELLO, BLOCKED] {
        let (store, sessions) = alone();
        says(&sessions, "first").await;
        let heard = Arc::new(Heard::default());
        let layer = ModelGuardLayer::builder(sessions.clone()).observer(heard.clone());
        store.next(&[Fate::Kept, Fate::Lost]);
        let end = layer.build().layer(model(answer)).oneshot(ask()).await;
        assert_eq!(end.is_err(), answer == BLOCKED);
        assert_eq!(heard.actions().last(), Some(&SessionAction::NotRecorded));
        // It is written with the next change.
        says(&sessions, "second").await;
        assert_eq!(found(&store).await, text(&sessions));
        let another = process(store.store.clone());
        another.load("s").await.unwrap();
        another.with("s", |session, _| assert_eq!(session.active(), None));
    }
}

#[tokio::test]
async fn a_call_begins_anew_behind_anothers_change() {
    let (_, one, other) = both();
    says(&one, "first").await;
    other.load("s").await.unwrap();
    says(&one, "second").await;
    ModelGuardLayer::new(other.clone()).layer(model(HELLO)).oneshot(ask()).await.unwrap();
    assert!(text(&other).contains("second"));
    other.with("s", |session, _| assert!(session.latest().unwrap().is_committed()));
}

#[tokio::test]
async fn a_change_that_is_lost_with_a_call_is_told() {
    let (store, one, other) = both();
    says(&one, "first").await;
    other.load("s").await.unwrap();
    says(&one, "second").await;
    // Before the call: the call is refused, and says why.
    other.with("s", |session, _| session.push(message(FORMAT, user("late"))));
    let guarded = ModelGuardLayer::new(other.clone()).layer(model(HELLO));
    let error = guarded.clone().oneshot(ask()).await.unwrap_err();
    assert!(find::<StoreError>(&*error).unwrap().is_conflict());
    guarded.oneshot(ask()).await.unwrap();

    // During the call: the answer is handed on, and the next change says it.
    let (meanwhile, first) = (other.clone(), Arc::new(one));
    let model = service_fn(move |_: ModelCall| {
        let (meanwhile, first) = (meanwhile.clone(), first.clone());
        async move {
            meanwhile.with("s", |session, _| session.push(message(FORMAT, user("later"))));
            let third = message(FORMAT, user("third"));
            let push = async || first.change("s", |session, _| session.push(third.clone())).await;
            assert!(push().await.unwrap_err().is_conflict());
            push().await.unwrap();
            Ok::<_, BoxError>(HELLO.to_owned())
        }
    });
    ModelGuardLayer::new(other.clone()).layer(model).oneshot(ask()).await.unwrap();
    let told = other.change("s", |_, _| ()).await.unwrap_err();
    assert!(told.is_conflict());
    other.change("s", |_, _| ()).await.unwrap();
    let after = found(&store).await;
    assert!(after.contains("third") && !after.contains("later"), "{after}");
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_await_nothing_partial_is_in_the_store() {
    let (store, sessions) = alone();
    says(&sessions, "first").await;
    let rounds = tr_testkit::rounds(200, 20_000);
    let report = drops::at_random(7, rounds, || {
        let sessions = sessions.clone();
        async move {
            let meanwhile = sessions.clone();
            let model = service_fn(move |_: ModelCall| {
                let meanwhile = meanwhile.clone();
                async move {
                    let part = message(FORMAT, user("part"));
                    drop(meanwhile.change("s", |session, _| session.push(part)).await);
                    Ok::<_, BoxError>(BLOCKED.to_owned())
                }
            });
            drop(ModelGuardLayer::new(sessions).layer(model).oneshot(ask()).await);
        }
    })
    .await;
    assert_eq!((report.finished + report.dropped, report.stuck), (rounds, 0));
    sessions.flush("s").await.unwrap();
    let after = found(&store).await;
    assert!(after.contains("first") && !after.contains("part"), "{after}");
    assert_eq!(after, text(&sessions));
    sessions.with("s", |session, _| assert_eq!(session.active(), None));
}

/// The process died while the model answered.
#[tokio::test]
async fn after_a_crash_the_calls_checkpoint_is_there_to_go_back_to() {
    let (store, sessions) = alone();
    says(&sessions, "first").await;
    let before = found(&store).await;
    let model = service_fn(async |_: ModelCall| Ok::<_, BoxError>(Callback(HELLO)));
    let guarded = ModelGuardLayer::streamed(sessions.clone()).layer(model);
    let on_its_way = guarded.oneshot(ask()).await.unwrap();
    says(&sessions, "part").await;
    std::mem::forget((on_its_way, sessions));

    let next = process(store.store.clone());
    next.load("s").await.unwrap();
    let back = |session: &mut Session, now| session.handle_error(ModelEnd::Failed, None, now);
    let recovery = next.change("s", back).await.unwrap();
    assert_eq!(recovery.message, "API error. Rolled back 1 messages.");
    assert_eq!(found(&store).await, before);
}

/// An answer whose pieces come by a callback.
struct Callback(&'static str);

impl BodyOf<Callback> for DefaultPolicy {
    type Watched = (Callback, BodyWatch);

    fn watched(&self, response: Callback, watch: BodyWatch) -> Self::Watched {
        (response, watch)
    }
}

#[tokio::test]
async fn a_streamed_answers_end_is_in_the_store_once_it_says_so() {
    let (store, sessions) = alone();
    says(&sessions, "first").await;
    let before = found(&store).await;
    let model = service_fn(async |_: ModelCall| Ok::<_, BoxError>(Callback(BLOCKED)));
    let guarded = ModelGuardLayer::streamed(sessions.clone()).layer(model);
    let (answer, mut watch) = guarded.oneshot(ask()).await.unwrap();
    watch.see(answer.0.as_bytes());
    says(&sessions, "part").await;
    let error = watch.end(None).unwrap();
    assert_eq!(error.to_string(), "Content filter triggered. Rolled back 1 messages.");
    poll_fn(|cx| watch.poll_recorded(cx)).await;
    assert_eq!(found(&store).await, before);
}

#[test]
fn the_guard_keeps_the_laws_over_a_store() {
    let ask = |n| ModelCall::new("s", format!(r#"[{{"role":"user","content":"{n}"}}]"#));
    let answer = |call: &ModelCall| format!(r#"{{"asked":{}}}"#, call.body);
    Laws::new(ask, answer).check(|model| {
        let sessions = Sessions::builder(FORMAT).store(Memory::new()).build().unwrap();
        ModelGuardLayer::new(sessions).layer(model)
    });
}
