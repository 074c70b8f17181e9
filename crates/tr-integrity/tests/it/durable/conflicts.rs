//! Two processes with one session: one wins, and the other is told.
use super::{Shaky, both, call, found, process, says, text, tool};
use crate::common::{message, user};
use tower::ServiceExt;
use tr_core::{Ran, failure_info, find};
use tr_integrity::{
    OUTCOME_UNKNOWN,
    store::{Revision, SessionStore, StoreError, StoreErrorKind},
};

async fn head(store: &Shaky) -> Option<Revision> {
    store.load("s").await.unwrap().last().map(|last| last.revision)
}

#[tokio::test]
async fn of_two_writers_one_wins_and_the_other_is_told() {
    let (store, one, other) = both();
    says(&one, "first").await;
    other.load("s").await.unwrap();
    says(&one, "second").await;
    let late = message(super::FORMAT, user("late"));
    let error = other.change("s", |session, _| session.push(late.clone())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict { head: head(&store).await });
    assert!(!found(&store).await.contains("late"));
    // Done again, it is done to the session as it is now.
    other.change("s", |session, _| session.push(late)).await.unwrap();
    let after = found(&store).await;
    assert!(after.find("second").unwrap() < after.find("late").unwrap());
    assert_eq!(after, text(&other));
}

#[tokio::test]
async fn what_with_did_is_lost_with_a_conflict_that_says_so() {
    let (store, one, other) = both();
    says(&one, "first").await;
    other.load("s").await.unwrap();
    other.with("s", |session, _| session.push(message(super::FORMAT, user("late"))));
    says(&one, "second").await;
    let runs = tool(&other, || async { panic!("it ran") });
    let error = runs.oneshot(call("a")).await.unwrap_err();
    let facts = failure_info(&*error).unwrap();
    assert_eq!((facts.ran(), facts.code()), (Ran::No, "session_corrupt"));
    assert!(facts.verdict().is_transient());
    assert!(find::<StoreError>(&*error).unwrap().is_conflict());
    // The next call finds the session as it is.
    tool(&other, || async {}).oneshot(call("a")).await.unwrap();
    let after = found(&store).await;
    assert!(!after.contains("late") && after.contains("second") && after.contains("answer a;"));
}

#[tokio::test]
async fn a_call_alone_begins_anew_behind_the_others() {
    let (store, one, other) = both();
    says(&one, "first").await;
    other.load("s").await.unwrap();
    for n in 0..5 {
        says(&one, &format!("more {n}")).await;
        tool(&other, || async {}).oneshot(call(&format!("t{n}"))).await.unwrap();
        one.load("s").await.unwrap();
        drop(one.flush("s").await);
        drop(one.change("s", |_, _| ()).await);
        drop(
            one.change("s", |session, _| {
                drop(session.checkpoint(tr_integrity::Operation::Manual, 0));
            })
            .await,
        );
    }
    let after = found(&store).await;
    (0..5).for_each(|n| assert!(after.contains(&format!("answer t{n};")), "{after}"));
    (0..5).for_each(|n| assert!(after.contains(&format!("more {n}")), "{after}"));
}

#[tokio::test]
async fn an_answer_finds_its_place_behind_others_changes() {
    let (store, one, other) = both();
    let tool = tool(&one, || {
        let other = other.clone();
        // It takes the running call for a dead one, and goes on.
        async move { says(&other, "meanwhile").await }
    });
    let outcome = tool.oneshot(call("a")).await.unwrap();
    assert!(outcome.recorded());
    let after = found(&store).await;
    assert_eq!(after, text(&one));
    assert!(after.contains("meanwhile") && after.contains("answer a;"), "{after}");
    assert!(!after.contains(OUTCOME_UNKNOWN), "{after}");
    assert_eq!(after.matches("tool_use_id").count(), 1, "{after}");
}

#[tokio::test]
async fn who_did_more_than_the_call_is_told_once_that_it_is_gone() {
    let (store, one, other) = both();
    let tool = tool(&one, || {
        let (one, other) = (one.clone(), other.clone());
        async move {
            says(&other, "meanwhile").await;
            one.with("s", |session, _| session.push(message(super::FORMAT, user("gone"))));
        }
    });
    assert!(tool.oneshot(call("a")).await.unwrap().recorded());
    assert!(one.flush("s").await.unwrap_err().is_conflict());
    one.flush("s").await.unwrap();
    let after = found(&store).await;
    assert_eq!(after, text(&one));
    assert!(after.contains("answer a;") && !after.contains("gone"), "{after}");
}

#[tokio::test]
async fn a_session_that_is_opened_and_not_loaded_is_a_conflict() {
    let store = Shaky::default();
    says(&process(store.clone()), "first").await;
    let other = process(store.clone());
    other.with("s", |session, _| session.push(message(super::FORMAT, user("blind"))));
    let error = other.flush("s").await.unwrap_err();
    let text = error.to_string();
    assert_eq!(
        text,
        "the session was changed elsewhere and is at revision 1; nothing was kept: load it and decide again"
    );
    other.load("s").await.unwrap();
    assert_eq!(super::text(&other), found(&store).await);
}

#[tokio::test]
async fn a_session_deleted_elsewhere_is_a_conflict() {
    let (_, one, other) = both();
    says(&one, "first").await;
    assert!(other.delete("s").await.unwrap());
    // Nothing to write, nothing to be told.
    one.change("s", |session, _| session.prune(0)).await.unwrap();
    let late = message(super::FORMAT, user("late"));
    let error = one.change("s", |session, _| session.push(late)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict { head: None });
    one.load("s").await.unwrap();
    assert_eq!(text(&one), "[]");
}
