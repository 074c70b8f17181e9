//! Answers that end well, fail, break off, or complain.
use super::world::{
    MODES, answer, answers, assert_committed, assert_rolled_back, call, cut, guarded, message,
    pieces, sessions, slowly, state,
};
use bytes::Bytes;
use futures_util::StreamExt;
use tower::ServiceExt;
use tr_core::{BoxError, Ran, Verdict, failure_info};
use tr_integrity::{
    AnswerCutOff, CycleMode, Format, Layer0Config, RecoveryAction, Sessions, WatchedBody,
};

const FORMAT: Format = Format::OpenAiChat;

/// Reads to the end; the agent writes down what it has after the first piece.
async fn read(
    sessions: &Sessions,
    answer: crate::streamed::world::Pieces,
) -> (Vec<Bytes>, Option<BoxError>) {
    let mut body = guarded(sessions, answer).oneshot(call(sessions)).await.unwrap();
    let (mut passed, mut error) = (Vec::new(), None);
    while let Some(item) = body.next().await {
        assert!(error.is_none(), "an error is the last item");
        match item {
            Ok(piece) => passed.push(piece),
            Err(failed) => error = Some(failed),
        }
        if passed.len() == 1 && error.is_none() {
            let so_far = message(FORMAT, "assistant", "I will");
            sessions.with("s", |session, _| session.push(so_far));
        }
    }
    (passed, error)
}

#[tokio::test(start_paused = true)]
async fn a_good_answer_is_committed_before_its_end_is_handed_on() {
    for (name, text) in answers("answered", "") {
        for mode in MODES {
            let sessions = sessions(FORMAT, mode);
            let (passed, error) = read(&sessions, pieces(&cut(&text, 64))).await;
            assert!(error.is_none(), "{name}: {error:?}");
            assert_eq!(passed.concat(), text.as_bytes(), "{name}");
            assert_committed(&sessions);
            sessions.with("s", |session, _| assert_eq!(session.transcript().len(), 2, "{name}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_rolled_back_and_told() {
    for name in ["anthropic-cut", "openai-chat-cut", "openai-responses-cut", "gemini-cut"] {
        for (name, text) in answers("failed", name) {
            let sessions = sessions(FORMAT, CycleMode::Preserve);
            let before = state(&sessions);
            let (passed, error) = read(&sessions, pieces(&cut(&text, 64))).await;
            assert_eq!(passed.concat(), text.as_bytes(), "{name}");
            let error = error.unwrap();
            assert_eq!(
                error.to_string(),
                "The model's answer broke off before its end. API error. Rolled back 1 messages."
            );
            let known = failure_info(&*error).unwrap();
            assert_eq!((known.code(), known.ran()), ("answer_cut_off", Ran::Yes));
            assert_eq!(known.verdict(), Verdict::TRANSIENT);
            let cut_off = error.downcast_ref::<AnswerCutOff>().unwrap();
            assert_eq!(cut_off.recovery().unwrap().action, RecoveryAction::RolledBack);
            assert_rolled_back(&sessions, &before);
        }
    }
}

/// The provider has said it itself: nothing is added.
#[tokio::test(start_paused = true)]
async fn failures_that_the_provider_tells_pass_as_they_are() {
    for (name, text) in answers("failed", "").iter().filter(|(name, _)| {
        ["overloaded", "error", "failed", "500", "429", "malformed"]
            .iter()
            .any(|it| name.contains(it))
    }) {
        let sessions = sessions(FORMAT, CycleMode::Preserve);
        let before = state(&sessions);
        let (passed, error) = read(&sessions, pieces(&cut(text, 64))).await;
        assert!(error.is_none(), "{name}: {error:?}");
        assert_eq!(passed.concat(), text.as_bytes());
        assert_rolled_back(&sessions, &before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_rolls_back() {
    let text = answer("answered/openai-chat.sse");
    for pieces in 0..3 {
        let sessions = sessions(FORMAT, CycleMode::Preserve);
        let before = state(&sessions);
        let whole = cut(&text, 200).into_iter().take(pieces).map(Ok);
        let broken = whole.chain([Err(BoxError::from("connection reset"))]).collect();
        let (_, error) = read(&sessions, slowly(broken)).await;
        assert_eq!(error.unwrap().to_string(), "connection reset");
        assert_rolled_back(&sessions, &before);
    }
}

/// The provider refuses the session in the middle of a stream: a repair is due.
#[tokio::test(start_paused = true)]
async fn a_complaint_in_a_stream_is_one_about_the_session() {
    let sessions = sessions(FORMAT, CycleMode::Preserve);
    let text = answer("refused/incomplete_use/openai-responses-failed.sse");
    let (_, error) = read(&sessions, pieces(&cut(&text, 64))).await;
    assert!(error.is_none());
    sessions.with("s", |session, _| {
        let kinds: Vec<_> = session.incidents().map(|incident| incident.kind.clone()).collect();
        assert_eq!(kinds, ["rollback", "api_error", "session_refused"]);
    });
}

#[tokio::test(start_paused = true)]
async fn switched_off_it_sees_nothing() {
    let off: Layer0Config = serde_json::from_str(r#"{"enabled":false}"#).unwrap();
    let sessions = Sessions::builder(FORMAT).config(off).build().unwrap();
    let filtered = cut(&answer("filtered/openai-chat-content-filter.sse"), 64);
    let (passed, error) =
        read_all(guarded(&sessions, pieces(&filtered)).oneshot(call(&sessions)).await.unwrap())
            .await;
    assert_eq!((passed, error), (filtered.len(), 0));
    // Errors pass, and what comes behind them.
    let odd = vec![Err(BoxError::from("odd")), Ok(Bytes::from("x")), Err(BoxError::from("odd"))];
    let body = guarded(&sessions, slowly(odd)).oneshot(call(&sessions)).await.unwrap();
    assert_eq!(read_all(body).await, (1, 2));
    sessions.with("s", |session, _| assert!(session.checkpoints().is_empty()));
}

async fn read_all(body: WatchedBody<crate::streamed::world::Pieces>) -> (usize, usize) {
    let items: Vec<_> = body.collect().await;
    let good = items.iter().filter(|item| item.is_ok()).count();
    (good, items.len() - good)
}
