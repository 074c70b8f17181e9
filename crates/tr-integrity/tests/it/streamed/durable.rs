//! Streamed answers in sessions that have a store.
use super::world::{MODES, answer, call, cut, guarded, json, message, pieces};
use futures_util::StreamExt;
use tower::ServiceExt;
use tr_integrity::{ContentFiltered, CycleMode, Format, Sessions, store::Memory};

const FORMAT: Format = Format::AnthropicMessages;

fn process(store: &Memory, mode: CycleMode) -> Sessions {
    Sessions::builder(FORMAT).mode(mode).store(store.clone()).build().unwrap()
}

async fn say(sessions: &Sessions, role: &str, text: &str) {
    let message = message(FORMAT, role, text);
    sessions.change("s", |session, _| session.push(message)).await.unwrap();
}

/// What a process that starts now finds, and whether a call is on its way in it.
async fn found(store: &Memory) -> (String, bool) {
    let another = process(store, CycleMode::Preserve);
    another.load("s").await.unwrap();
    (json(&another), another.with("s", |session, _| session.active().is_some()))
}

#[tokio::test(start_paused = true)]
async fn the_end_is_in_the_store_before_it_is_handed_on() {
    for mode in MODES {
        for (name, is_good) in [
            ("answered/anthropic-tool-use.sse", true),
            ("filtered/anthropic-refusal-mid-tool.sse", false),
        ] {
            let store = Memory::new();
            let sessions = process(&store, mode);
            say(&sessions, "user", "go").await;
            let before = found(&store).await;
            let chunks = cut(&answer(name), 50);
            let mut body =
                guarded(&sessions, pieces(&chunks)).oneshot(call(&sessions)).await.unwrap();
            for chunk in &chunks {
                assert_eq!(body.next().await.unwrap().unwrap(), chunk);
                assert!(found(&store).await.1, "the call is on its way");
            }
            say(&sessions, "assistant", "I will").await;
            let last = body.next().await;
            let (after, is_open) = found(&store).await;
            assert!(!is_open && body.next().await.is_none());
            if is_good {
                assert!(last.is_none() && after.contains("I will"));
            } else {
                assert!(last.unwrap().unwrap_err().is::<ContentFiltered>());
                assert_eq!((after, is_open), before);
            }
        }
    }
}

/// What a drop has settled is written with the session's next change.
#[tokio::test(start_paused = true)]
async fn dropped_half_way_it_is_rolled_back_in_the_store_too() {
    let store = Memory::new();
    let sessions = process(&store, CycleMode::Preserve);
    say(&sessions, "user", "go").await;
    let before = found(&store).await;
    let chunks = cut(&answer("answered/anthropic-tool-use.sse"), 50);
    let mut body = guarded(&sessions, pieces(&chunks)).oneshot(call(&sessions)).await.unwrap();
    body.next().await.unwrap().unwrap();
    say(&sessions, "assistant", "I will").await;
    drop(body);
    sessions.flush("s").await.unwrap();
    assert_eq!(found(&store).await, before);
}
