//! Sessions that are loaded, compacted, closed and deleted.
use super::{FORMAT, Shaky, alone, call, found, process, says, text, tool};
use crate::common::{MODES, message, user, uses};
use tower::ServiceExt;
use tr_core::CycleRef;
use tr_integrity::{
    OUTCOME_UNKNOWN, Operation, ResetOptions, Session, Sessions,
    store::{Entry, SessionStore, StoreErrorKind},
};

/// Processes that died before and after their tools were started.
#[tokio::test]
async fn what_a_crash_has_left_is_settled() {
    for mode in MODES {
        let store = Shaky::default();
        let dead = process(store.clone());
        dead.change("s", |session, now| {
            session.push(message(FORMAT, uses(FORMAT, &["a", "b", "c"])));
            for (id, starts) in [("a", true), ("b", false)] {
                let cycle = CycleRef { session: "s", tool_use_id: id, name: "pay", input: "{}" };
                let id = session.begin_cycle(&cycle, now);
                if starts {
                    session.start_cycle(id);
                }
            }
        })
        .await
        .unwrap();
        let sessions = Sessions::builder(FORMAT).mode(mode).store(store.clone()).build().unwrap();
        sessions.load("s").await.unwrap();
        sessions.with("s", |session, _| {
            // What nobody has called is left to the agent.
            assert_eq!(session.validator().pending().filter(|id| *id == "c").count(), 1);
            assert!(session.cycles().iter().all(|cycle| !cycle.abandoned));
        });
        tool(&sessions, || async {}).oneshot(call("c")).await.unwrap();
        let after = found(&store).await;
        assert_eq!(after, text(&sessions));
        assert!(after.contains("answer c;"), "{after}");
        // What the agent has put there stays in both modes, and is answered.
        assert_eq!(after.matches(OUTCOME_UNKNOWN).count(), 1, "{after}");
        assert_eq!(after.matches("given up before the tool started").count(), 1, "{after}");
    }
}

#[tokio::test]
async fn a_compacted_session_is_the_same_in_one_entry() {
    let (store, sessions) = alone();
    for n in 0..20 {
        says(&sessions, &format!("message {n}")).await;
        let kept = sessions
            .change("s", |session, now| session.checkpoint(Operation::ApiCall, now))
            .await
            .unwrap();
        says(&sessions, "left behind").await;
        sessions
            .change("s", |session, now| session.rollback(&kept.id, now))
            .await
            .unwrap()
            .unwrap();
    }
    sessions
        .change("s", |session, now| session.reset(ResetOptions { archive: true }, now))
        .await
        .unwrap();
    says(&sessions, "anew").await;
    let before = found(&store).await;
    let log = store.load("s").await.unwrap();
    assert!(log.len() > 40);
    // What rollbacks have left behind is still in the log.
    let whole = log.iter().map(|entry| String::from_utf8_lossy(&entry.body)).collect::<String>();
    assert_eq!(whole.matches("left behind").count(), 20);

    sessions.compact("s").await.unwrap();
    let compacted = store.load("s").await.unwrap();
    let [Entry { revision, body, .. }] = &compacted[..] else { panic!() };
    assert_eq!(*revision, log[log.len() - 1].revision);
    assert_eq!(String::from_utf8_lossy(body).matches("left behind").count(), 0);
    assert_eq!(found(&store).await, before);
    let again = process(store.clone());
    again.load("s").await.unwrap();
    let kept = |sessions: &Sessions| {
        sessions.with("s", |session, _| {
            let archived: Vec<_> =
                session.archives().map(|archive| archive.messages.len()).collect();
            let incidents: Vec<_> = session.incidents().cloned().collect();
            (archived, incidents, session.checkpoints().to_vec())
        })
    };
    assert_eq!(kept(&again), kept(&sessions));
    assert_eq!(kept(&again).0, [20]);
    // And both go on, one after the other.
    says(&sessions, "more").await;
    assert!(found(&store).await.contains("more"));
}

#[tokio::test]
async fn what_cannot_be_read_says_where_and_why() {
    let (store, sessions) = alone();
    says(&sessions, "first").await;
    says(&sessions, "second").await;
    let log = store.load("s").await.unwrap();
    type Damage = Box<dyn Fn(&mut Vec<Entry>)>;
    let cases: [(&str, Damage, &str); 4] = [
        (
            "a byte",
            Box::new(|log| log[1].body[90] ^= 1),
            "entry 2: it is damaged: the checksum is another",
        ),
        ("a version", Box::new(|log| log[0].body[3] = b'7'), "entry 1: a newer version wrote it"),
        (
            "no beginning",
            Box::new(|log| drop(log.remove(0))),
            "entry 2: the log does not begin with the session's form",
        ),
        ("swapped", Box::new(|log| log.swap(0, 1)), "entry 1 does not follow the one before it"),
    ];
    for (what, damage, why) in cases {
        let mut log = log.clone();
        damage(&mut log);
        let damaged = Shaky::default();
        let mut after = None;
        for entry in &log {
            damaged.append("s", after, entry).await.unwrap();
            after = Some(entry.revision);
        }
        let error = process(damaged).load("s").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{what}");
        let text = error.to_string();
        assert_eq!(
            text,
            format!(
                "the session cannot be read: update this program, or check the store for damage: session \"s\"{} {why}",
                if what == "swapped" { ":" } else { "," }
            ),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_copy_of_what_is_stored_settles_nothing() {
    let (store, sessions) = alone();
    sessions
        .change("s", |session, now| {
            session.push(message(FORMAT, user("pay")));
            let cycle = CycleRef { session: "s", tool_use_id: "a", name: "pay", input: "{}" };
            let id = session.begin_cycle(&cycle, now);
            session.start_cycle(id);
        })
        .await
        .unwrap();
    let other = process(store.clone());
    let mut copy = other.stored("s").await.unwrap().unwrap();
    assert_eq!((copy.transcript().len(), copy.cycles().len()), (1, 1));
    copy.truncate(0, 0);
    assert!(other.is_empty(), "nothing is opened");
    assert_eq!(other.stored("s").await.unwrap().unwrap().transcript().len(), 1);
    assert!(other.stored("t").await.unwrap().is_none());
    assert!(Sessions::new(FORMAT).stored("s").await.unwrap().is_none());
}

#[tokio::test]
async fn a_session_that_exists_already_is_taken_and_written() {
    let (store, sessions) = alone();
    let text = r#"{ "model": "m", "messages": [ {"role":"user", "content":"hi"} ], "n" : 1 }"#;
    sessions.insert(Session::load("s", tr_integrity::Transcript::read(text).unwrap()));
    sessions.flush("s").await.unwrap();
    assert_eq!(found(&store).await, text);
    let session = sessions.remove("s").unwrap();
    assert_eq!(session.transcript().to_json(), text);
}

#[tokio::test]
async fn what_waits_for_the_store_is_not_closed() {
    let (store, sessions) = alone();
    sessions.with("s", |session, _| session.push(message(FORMAT, user("hi"))));
    assert!(sessions.remove("s").is_none());
    store.next(&[super::shaky::Fate::Lost]);
    sessions.flush("s").await.unwrap_err();
    assert!(sessions.remove("s").is_none());
    sessions.flush("s").await.unwrap();
    assert!(sessions.remove("s").is_some());
    sessions.load("s").await.unwrap();
    assert!(super::text(&sessions).contains("hi"));
}

#[tokio::test]
async fn a_deleted_session_begins_anew() {
    let (store, sessions) = alone();
    assert!(!sessions.delete("s").await.unwrap());
    says(&sessions, "first").await;
    assert!(sessions.delete("s").await.unwrap());
    says(&sessions, "second").await;
    let after = found(&store).await;
    assert!(after.contains("second") && !after.contains("first"), "{after}");
    assert_eq!(sessions.store().unwrap().list(None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn without_a_store_the_same_calls_do() {
    let sessions = Sessions::new(FORMAT);
    sessions.load("s").await.unwrap();
    says(&sessions, "hi").await;
    sessions.flush("s").await.unwrap();
    sessions.compact("s").await.unwrap();
    assert!(text(&sessions).contains("hi"));
    assert!(sessions.store().is_none());
    assert!(sessions.delete("s").await.unwrap());
    assert!(!sessions.delete("s").await.unwrap());
}
