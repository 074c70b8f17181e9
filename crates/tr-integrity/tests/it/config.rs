//! 002's configuration: each key by what it changes.
use crate::{
    common::{message, of, says, user, uses},
    session::sessions,
};
use serde_json::json;
use tower::{Layer, ServiceExt};
use tr_core::{Answer, BoxError, CycleRef, Ran};
use tr_integrity::{
    CycleMode, Format, ModelCall, ModelGuardLayer, SessionCorrupt, Sessions, Transcript, Validator,
};
use tr_testkit::tool::{Scripted, Step};

const FORMAT: Format = Format::AnthropicMessages;
const HELLO: &str = r#"{"role":"assistant","content":"hello","stop_reason":"end_turn"}"#;

fn with(config: serde_json::Value) -> Sessions {
    sessions(FORMAT, CycleMode::Preserve, config)
}

/// Calls a model that answers so, and gives what was sent to it.
async fn call(
    sessions: &Sessions,
    sent: &Transcript,
    answer: &str,
) -> (Result<String, BoxError>, Vec<String>) {
    let model = Scripted::<ModelCall, String>::script([Step::Ok(answer.to_owned())]);
    let asked = model.handle();
    let guarded = ModelGuardLayer::new(sessions.clone()).layer(model);
    let answer = guarded.oneshot(ModelCall::new("s", sent.to_json())).await;
    (answer, asked.requests().into_iter().map(|call| call.body).collect())
}

fn corrupt() -> Transcript {
    of(FORMAT, &[user("hi"), uses(FORMAT, &["a"]), user("so?")])
}

fn fine() -> Transcript {
    of(FORMAT, &[user("hi")])
}

#[tokio::test(start_paused = true)]
async fn enabled() {
    let filtered = r#"{"content":[],"stop_reason":"refusal"}"#;
    let off = with(json!({"enabled": false}));
    let (answer, sent) = call(&off, &corrupt(), filtered).await;
    assert_eq!((answer.unwrap().as_str(), sent), (filtered, vec![corrupt().to_json()]));
    assert!(off.is_empty());

    let on = with(json!({"enabled": true}));
    assert!(call(&on, &corrupt(), filtered).await.0.unwrap_err().is::<SessionCorrupt>());
    let error = call(&on, &fine(), filtered).await.0.unwrap_err();
    assert_eq!(error.to_string(), "Content filter triggered. Rolled back 0 messages.");
}

#[tokio::test(start_paused = true)]
async fn validate_before_call() {
    for validate in [true, false] {
        let sessions = with(json!({"validateBeforeCall": validate}));
        let (answer, sent) = call(&sessions, &corrupt(), HELLO).await;
        assert_eq!((answer.is_err(), sent.is_empty()), (validate, validate));
        // The rest of the guard works on.
        if !validate {
            sessions.with("s", |session, _| assert!(session.latest().unwrap().is_committed()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn auto_repair() {
    for repair in [true, false] {
        let sessions = with(json!({"autoRepair": repair}));
        let (answer, sent) = call(&sessions, &corrupt(), HELLO).await;
        assert_eq!((answer.is_ok(), sent.len()), (repair, usize::from(repair)));
        for sent in sent {
            let sent = Transcript::read_as(FORMAT, &sent).unwrap();
            assert!(Validator::of(&sent).is_valid());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn checkpoint_retention() {
    for keep in [1, 3] {
        let sessions = with(json!({"checkpointRetention": keep}));
        for _ in 0..7 {
            call(&sessions, &fine(), HELLO).await.0.unwrap();
        }
        sessions.with("s", |session, _| assert_eq!(session.checkpoints().len(), keep));
    }
}

#[tokio::test(start_paused = true)]
async fn snapshot_messages() {
    for snapshot in [true, false] {
        let sessions = with(json!({"snapshotMessages": snapshot}));
        sessions.with("s", |session, _| session.push(message(FORMAT, says("hm"))));
        call(&sessions, &fine(), HELLO).await.0.unwrap();
        sessions.with("s", |session, _| {
            let kept = session.latest().unwrap().snapshot.as_ref().map(Vec::len);
            assert_eq!(kept, snapshot.then_some(1));
        });
    }
}

#[tokio::test(start_paused = true)]
async fn verbose() {
    for verbose in [true, false] {
        let sessions = with(json!({"verbose": verbose}));
        call(&sessions, &fine(), HELLO).await.0.unwrap();
        let kinds = sessions.with("s", |session, _| {
            session.incidents().map(|incident| incident.kind.clone()).collect::<Vec<_>>()
        });
        assert_eq!(kinds, if verbose { vec!["checkpoint", "commit"] } else { vec![] });
        // So are the steps of a cycle.
        sessions.with("s", |session, now| {
            let cycle = CycleRef { session: "s", tool_use_id: "a", name: "x", input: "{}" };
            let id = session.begin_cycle(&cycle, now);
            session.start_cycle(id);
            let answer = Answer { content: "1".into(), is_error: false, ran: Ran::Yes };
            session.finish_cycle(id, &answer, now);
            let id = session.begin_cycle(&cycle, now);
            session.start_cycle(id);
            session.abandon_cycle(id, now);
            let kinds: Vec<_> =
                session.incidents().skip(2).map(|incident| &*incident.kind).collect();
            let steps = [
                "checkpoint",
                "cycle_begun",
                "cycle_recorded",
                "commit",
                "checkpoint",
                "cycle_begun",
                "cycle_abandoned",
            ];
            assert_eq!(kinds, if verbose { steps.to_vec() } else { vec![] });
            session.recover(now);
        });
        // Failures are kept in any case.
        call(&sessions, &fine(), "Bad gateway").await.0.unwrap();
        let failed = sessions.with("s", |session, _| {
            session.incidents().any(|incident| incident.kind == "api_error")
        });
        assert!(failed);
    }
}
