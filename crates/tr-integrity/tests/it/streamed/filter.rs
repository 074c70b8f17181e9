//! A filter stops an answer in the middle.
use super::world::{
    MODES, answer, answers, assert_rolled_back, call, cut, guarded, json, message, pieces,
    sessions, slowly, state,
};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;
use tower::ServiceExt;
use tr_core::{Answer, BoxError, CycleRef, Ran, failure_info, find};
use tr_integrity::{ContentFiltered, CycleMode, Format, ModelCall, RecoveryAction, Sessions};

#[tokio::test(start_paused = true)]
async fn si_18_content_filter_mid_stream_rolls_back_and_the_user_is_told() {
    let mut seen = 0;
    for (format, name) in [
        (Format::AnthropicMessages, "anthropic"),
        (Format::OpenAiChat, "openai-chat"),
        (Format::OpenAiChat, "openai-flagged"),
        (Format::OpenAiChat, "azure"),
        (Format::OpenAiResponses, "openai-responses"),
        (Format::Gemini, "gemini"),
    ] {
        for ((name, text), mode) in answers("filtered", name)
            .iter()
            .flat_map(|answer| MODES.into_iter().map(move |mode| (answer, mode)))
        {
            for size in [1, 7, 100, text.len()] {
                seen += 1;
                let sessions = sessions(format, mode);
                let before = state(&sessions);
                let chunks = cut(text, size);
                let call = call(&sessions);
                let mut body = guarded(&sessions, pieces(&chunks)).oneshot(call).await.unwrap();

                // Every piece passes, untouched and not copied.
                for (at, chunk) in chunks.iter().enumerate() {
                    let passed = body.next().await.unwrap().unwrap();
                    assert_eq!(passed.as_ptr_range(), chunk.as_ptr_range(), "{name}");
                    if at == chunks.len() / 2 {
                        // The agent writes down what it has so far.
                        let so_far = message(format, "assistant", "I will");
                        sessions.with("s", |session, _| session.push(so_far));
                    }
                }
                let error = body.next().await.unwrap().unwrap_err();
                assert!(body.next().await.is_none() && body.next().await.is_none());

                assert_eq!(error.to_string(), "Content filter triggered. Rolled back 1 messages.");
                let filtered = error.downcast_ref::<ContentFiltered>().unwrap();
                assert_eq!(filtered.recovery().action, RecoveryAction::RolledBack);
                assert_eq!(
                    (filtered.ran(), failure_info(&*error).unwrap().ran()),
                    (Ran::Yes, Ran::Yes)
                );
                assert_rolled_back(&sessions, &before);
                sessions.with("s", |session, _| {
                    let incident = session.incidents().find(|it| it.kind == "content_filter");
                    let incident = serde_json::to_value(incident.unwrap()).unwrap();
                    assert_eq!(incident["rolledBack"], json!(1));
                    assert_eq!(incident["checkpoint"], json!(filtered.recovery().checkpoint));
                });
            }
        }
    }
    assert!(seen >= 200, "{seen}");
}

/// The tool ran while the answer came: what it did is not forgotten, unless 002 is meant to the
/// letter.
#[tokio::test(start_paused = true)]
async fn si_12_content_filter_during_a_tool_that_a_streamed_answer_asked_for() {
    let format = Format::AnthropicMessages;
    for mode in MODES {
        let sessions = sessions(format, mode);
        let before = state(&sessions);
        let chunks = cut(&answer("filtered/anthropic-refusal-mid-tool.sse"), 100);
        let mut body = guarded(&sessions, pieces(&chunks)).oneshot(call(&sessions)).await.unwrap();
        body.next().await.unwrap().unwrap();
        sessions.with("s", |session, now| {
            session.push(message(format, "assistant", "I will"));
            let cycle = CycleRef { session: "s", tool_use_id: "toolu_1", name: "pay", input: "{}" };
            let cycle = session.begin_cycle(&cycle, now);
            session.start_cycle(cycle);
            let paid = Answer { content: "receipt 7".into(), is_error: false, ran: Ran::Yes };
            session.finish_cycle(cycle, &paid, now);
        });
        let last = body.collect::<Vec<_>>().await.pop().unwrap();
        let error = last.unwrap_err();
        assert_eq!(error.to_string(), "Content filter triggered. Rolled back 3 messages.");
        if mode == CycleMode::Rollback {
            assert_rolled_back(&sessions, &before);
            continue;
        }
        let json = json(&sessions);
        assert!(json.contains("receipt 7") && !json.contains("I will"), "{json}");
        sessions.with("s", |session, _| assert!(session.validate().valid));
    }
}

/// Cycles that were complete before the call stay in both modes.
#[tokio::test(start_paused = true)]
async fn what_was_complete_before_the_call_stays() {
    let format = Format::AnthropicMessages;
    for mode in MODES {
        let sessions = sessions(format, mode);
        sessions.with("s", |session, now| {
            let cycle = CycleRef { session: "s", tool_use_id: "a", name: "pay", input: "{}" };
            let cycle = session.begin_cycle(&cycle, now);
            session.start_cycle(cycle);
            let paid = Answer { content: "receipt 7".into(), is_error: false, ran: Ran::Yes };
            session.finish_cycle(cycle, &paid, now);
        });
        let before = state(&sessions);
        let chunks = cut(&answer("filtered/anthropic-blocked-mid-stream.sse"), 50);
        let body = guarded(&sessions, pieces(&chunks)).oneshot(call(&sessions)).await.unwrap();
        let last = body.collect::<Vec<_>>().await.pop().unwrap();
        let error = last.unwrap_err();
        assert_eq!(error.to_string(), "Content filter triggered. Rolled back 0 messages.");
        assert!(before.0.contains("receipt 7"));
        assert_rolled_back(&sessions, &before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_before_the_connection_breaks_is_told_with_its_cause() {
    let text = answer("filtered/openai-chat-content-filter.sse");
    let text = text.replace("data: [DONE]\n\n", "");
    let broken = [Ok(Bytes::from(text)), Err(BoxError::from("connection reset"))];
    let sessions = sessions(Format::OpenAiChat, CycleMode::Preserve);
    let call = call(&sessions);
    let body = guarded(&sessions, slowly(broken.into())).oneshot(call).await.unwrap();
    let items: Vec<_> = body.collect().await;
    let [Ok(_), Err(error)] = &items[..] else { panic!("{items:?}") };
    assert!(find::<ContentFiltered>(&**error).is_some());
    assert_eq!(tr_core::root_cause(&**error).to_string(), "connection reset");
}

#[tokio::test(start_paused = true)]
async fn without_a_session_the_user_is_told_all_the_same() {
    let sessions = Sessions::new(Format::OpenAiChat);
    let chunks = cut(&answer("filtered/gemini-safety-array.json"), 9);
    let call = ModelCall { session: None, body: r#"{"contents":[]}"#.into() };
    let body = guarded(&sessions, pieces(&chunks)).oneshot(call).await.unwrap();
    let error = body.collect::<Vec<_>>().await.pop().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "Content filter triggered.");
    assert!(sessions.is_empty());
}
