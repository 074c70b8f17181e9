//! Callers that are gone before the answer's end.
use super::world::{
    MODES, answer, assert_committed, assert_rolled_back, call, cut, guarded, message, pieces,
    sessions, state,
};
use futures_util::{FutureExt, StreamExt};
use tower::ServiceExt;
use tr_integrity::{Checkpoint, CycleMode, Format, Sessions};
use tr_testkit::drops;

const FORMAT: Format = Format::AnthropicMessages;

/// Reads an answer and writes down what came so far after each piece.
async fn read(sessions: Sessions, text: String, size: usize) {
    let answer = pieces(&cut(&text, size));
    let call = call(&sessions);
    let mut body = guarded(&sessions, answer).oneshot(call).await.unwrap();
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else { return };
        let so_far = message(FORMAT, "assistant", &format!("{} bytes", piece.len()));
        sessions.with("s", |session, _| session.push(so_far));
    }
}

/// At every await: nothing partial stays, unless the provider's last event was here already.
#[tokio::test(start_paused = true)]
async fn dropped_at_any_point_the_session_is_at_its_checkpoint() {
    for (name, is_good) in [
        ("answered/anthropic-tool-use.sse", true),
        ("filtered/anthropic-refusal-mid-tool.sse", false),
        ("failed/anthropic-overloaded-mid-stream.sse", false),
    ] {
        let text = answer(name);
        for mode in MODES {
            for polls in 0.. {
                let sessions = sessions(FORMAT, mode);
                let before = state(&sessions);
                let mut reading = Box::pin(read(sessions.clone(), text.clone(), 50));
                let mut is_over = false;
                for _ in 0..polls {
                    is_over = is_over || (&mut reading).now_or_never().is_some();
                }
                drop(reading);
                if is_over && is_good {
                    assert_committed(&sessions);
                    break;
                }
                let len = sessions.with("s", |session, _| session.transcript().len());
                if is_good && len > 1 {
                    // The last event was in the last piece.
                    assert_eq!(len, 2 + text.len() / 50, "{name} {polls}");
                    assert_committed(&sessions);
                } else {
                    assert_rolled_back(&sessions, &before);
                }
                if is_over {
                    break;
                }
            }
        }
    }
}

/// A client of event streams stops at the last event, and never asks for the body's end.
#[tokio::test(start_paused = true)]
async fn who_stops_at_the_last_event_has_a_whole_answer() {
    for (name, is_good) in [
        ("answered/anthropic-tool-use.sse", true),
        ("answered/openai-chat.sse", true),
        ("answered/openai-responses.sse", true),
        ("answered/gemini.sse", true),
        ("filtered/anthropic-refusal.sse", false),
        ("filtered/openai-chat-content-filter.sse", false),
    ] {
        let sessions = sessions(FORMAT, CycleMode::Preserve);
        let before = state(&sessions);
        let chunks = cut(&answer(name), 33);
        let mut body = guarded(&sessions, pieces(&chunks)).oneshot(call(&sessions)).await.unwrap();
        for _ in &chunks {
            body.next().await.unwrap().unwrap();
        }
        sessions.with("s", |session, _| session.push(message(FORMAT, "assistant", "done")));
        drop(body);
        if is_good {
            assert_committed(&sessions);
            sessions.with("s", |session, _| assert_eq!(session.transcript().len(), 2));
        } else {
            assert_rolled_back(&sessions, &before);
            let kinds = sessions.with("s", |session, _| {
                session.incidents().map(|it| it.kind.clone()).collect::<Vec<_>>()
            });
            assert!(kinds.iter().any(|kind| kind == "content_filter"), "{name}: {kinds:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_random_nothing_is_left_open() {
    let sessions = sessions(FORMAT, CycleMode::Preserve);
    let texts = ["answered/anthropic-tool-use.sse", "filtered/anthropic-refusal.sse"].map(answer);
    let mut turn = 0;
    let rounds = tr_testkit::rounds(300, 20_000);
    let report = drops::at_random(7, rounds, || {
        turn += 1;
        read(sessions.clone(), texts[turn % 2].clone(), 100)
    })
    .await;
    assert_eq!((report.finished + report.dropped, report.stuck), (rounds, 0));
    assert!(report.dropped > rounds / 4 && report.finished > rounds / 20, "{report:?}");
    sessions.with("s", |session, _| {
        assert_eq!(session.active(), None);
        assert!(session.checkpoints().iter().all(Checkpoint::is_committed));
        assert!(session.validate().valid);
    });
}
