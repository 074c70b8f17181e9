//! The layer around a model's API.
use crate::common::{FORMATS, message, of, results, says, user, uses};
use std::time::Duration;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tr_core::{BoxError, DefaultPolicy, End, Ran, code, failure_info, find};
use tr_integrity::{
    BodyOf, BodyWatch, ContentFiltered, Format, ModelCall, ModelEnd, ModelEndOf, ModelGuardLayer,
    RecoveryAction, SessionCorrupt, Sessions, TranscriptOf, Validator,
};
use tr_testkit::{
    laws::Laws,
    tool::{Scripted, Step},
};

const HELLO: &str = r#"{"role":"assistant","content":"hello","stop_reason":"end_turn"}"#;

fn model(body: &str) -> Scripted<ModelCall, String> {
    Scripted::script([Step::Ok(body.to_owned())]).then_repeat_last()
}

fn auto_repairing(format: Format) -> Sessions {
    let config = serde_json::from_str(r#"{"autoRepair": true}"#).unwrap();
    Sessions::builder(format).config(config).build().unwrap()
}

fn request(format: Format, messages: &[String]) -> ModelCall {
    let body = format!(r#"{{"model":"m", "messages":{}}}"#, of(format, messages).to_json());
    ModelCall::new("s", body)
}

fn corrupt(format: Format) -> Vec<String> {
    let mut messages = vec![user("hi"), says("hello")];
    messages.extend(results(format, &[("ghost", "42")]));
    messages.push(user("so?"));
    messages
}

#[tokio::test(start_paused = true)]
async fn si_16_api_call_with_a_valid_session() {
    for format in FORMATS {
        let mut messages = vec![user("go"), uses(format, &["a"])];
        messages.extend(results(format, &[("a", "1")]));
        let sent = request(format, &messages);
        let model = model(HELLO);
        let asked = model.handle();
        let sessions = Sessions::new(format);
        let guarded =
            ServiceBuilder::new().layer(ModelGuardLayer::new(sessions.clone())).service(model);
        assert_eq!(guarded.oneshot(sent.clone()).await.unwrap(), HELLO);
        assert_eq!(asked.requests(), [sent]); // byte for byte
        sessions.with("s", |session, _| {
            assert!(session.latest().unwrap().is_committed());
            assert_eq!(session.active(), None);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn si_17_api_call_with_a_corrupt_session_is_blocked_and_a_repair_offered() {
    for format in FORMATS {
        let model = model(HELLO);
        let asked = model.handle();
        let guarded = ModelGuardLayer::new(Sessions::new(format)).layer(model);
        let error = guarded.oneshot(request(format, &corrupt(format))).await.unwrap_err();
        assert_eq!(asked.calls(), 0);
        let known = failure_info(&*error).unwrap();
        assert_eq!((known.code(), known.ran()), (code::SESSION_CORRUPT, Ran::No));
        let corrupt = error.downcast_ref::<SessionCorrupt>().unwrap();
        let said = "tool_result without preceding assistant message";
        if format == Format::OpenAiChat {
            assert_eq!(corrupt.result().error.as_deref(), Some(said));
        } else {
            assert_eq!(corrupt.result().error.as_deref(), Some("Orphaned tool_result: ghost"));
        }
        assert_eq!(corrupt.plan().actions().len(), 1);
        assert!(
            error.to_string().contains("was not called (1 error; a repair of 1 step is offered)"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn si_17_api_call_with_a_corrupt_session_is_repaired_where_that_is_allowed() {
    for format in FORMATS {
        let model = model(HELLO);
        let asked = model.handle();
        let guarded = ModelGuardLayer::new(auto_repairing(format)).layer(model);
        guarded.oneshot(request(format, &corrupt(format))).await.unwrap();
        let [sent] = &asked.requests()[..] else { panic!() };
        assert!(sent.body.starts_with(r#"{"model":"m", "messages":["#));
        let sent = tr_integrity::Transcript::read_as(format, &sent.body).unwrap();
        assert!(Validator::of(&sent).is_valid());
        assert!(sent.to_json().contains("42"));
    }
}

/// What waits for a tool is valid in a session, and refused when it is sent.
#[tokio::test(start_paused = true)]
async fn a_live_tail_is_not_sent() {
    for sessions in [Sessions::new(Format::OpenAiChat), auto_repairing(Format::OpenAiChat)] {
        let model = model(HELLO);
        let asked = model.handle();
        let guarded = ModelGuardLayer::new(sessions).layer(model);
        let sent = request(Format::OpenAiChat, &[user("go"), uses(Format::OpenAiChat, &["a"])]);
        let error = guarded.oneshot(sent).await.unwrap_err();
        assert!(error.is::<SessionCorrupt>() && error.to_string().contains("wait"), "{error}");
        assert_eq!(asked.calls(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn content_filter_rolls_back_and_the_user_is_told() {
    let filtered = [
        (
            Format::AnthropicMessages,
            r#"{"role":"assistant","content":[{"type":"text","text":"I"}],"stop_reason":"refusal"}"#,
        ),
        (Format::AnthropicMessages, r#"{"type":"error","error":{"type":"content_filtered"}}"#),
        (
            Format::OpenAiChat,
            r#"{"choices":[{"finish_reason":"content_filter","message":{"role":"assistant"}}]}"#,
        ),
    ];
    for (format, body) in filtered {
        let sessions = Sessions::new(format);
        sessions.with("s", |session, _| session.push(message(format, user("hi"))));
        let before = sessions.with("s", |session, _| session.transcript().to_json());
        let slow = Step::after(Duration::from_secs(1), Step::Ok(body.to_owned()));
        let guarded = ModelGuardLayer::new(sessions.clone()).layer(Scripted::script([slow]));
        let running = tokio::spawn(guarded.oneshot(request(format, &[user("hi")])));
        tokio::time::sleep(Duration::from_millis(500)).await;
        sessions.with("s", |session, _| session.push(message(format, says("I can"))));

        let error = running.await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "Content filter triggered. Rolled back 1 messages.");
        let filtered = error.downcast_ref::<ContentFiltered>().unwrap();
        assert_eq!(filtered.recovery().action, RecoveryAction::RolledBack);
        assert_eq!(filtered.ran(), Ran::Yes);
        let after = sessions.with("s", |session, _| session.transcript().to_json());
        assert_eq!(after, before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_comes_as_an_error_keeps_its_cause() {
    let sessions = Sessions::new(Format::AnthropicMessages);
    let blocked = "400: Output blocked by content filtering policy";
    let model = Scripted::<ModelCall, String>::script([Step::err(blocked)]);
    let guarded = ModelGuardLayer::new(sessions).layer(model);
    let sent = request(Format::AnthropicMessages, &[user("hi")]);
    let error = guarded.oneshot(sent).await.unwrap_err();
    assert_eq!(error.to_string(), "Content filter triggered. Rolled back 0 messages.");
    assert!(find::<tr_testkit::tool::Failure>(&*error).is_some());
}

#[tokio::test(start_paused = true)]
async fn errors_and_dropped_calls_roll_back_too() {
    for step in [Step::err("503"), Step::Hang] {
        let format = Format::AnthropicMessages;
        let sessions = Sessions::new(format);
        let model = Scripted::<ModelCall, String>::script([step]);
        let mut guarded = ModelGuardLayer::new(sessions.clone()).layer(model);
        let call = guarded.ready().await.unwrap().call(request(format, &[user("hi")]));
        sessions.with("s", |session, _| session.push(message(format, says("part"))));
        let _ = tokio::time::timeout(Duration::from_secs(9), call).await;
        sessions.with("s", |session, _| {
            assert!(session.transcript().is_empty());
            assert_eq!(session.active(), None);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn abandoned_tools_are_settled_before_the_next_call() {
    let format = Format::AnthropicMessages;
    let sessions = Sessions::new(format);
    sessions.with("s", |session, now| {
        let cycle = tr_core::CycleRef { session: "s", tool_use_id: "a", name: "x", input: "{}" };
        let id = session.begin_cycle(&cycle, now);
        session.start_cycle(id);
        session.abandon_cycle(id, now);
    });
    let guarded = ModelGuardLayer::new(sessions.clone()).layer(model(HELLO));
    guarded.oneshot(request(format, &[user("hi")])).await.unwrap();
    let json = sessions.with("s", |session, _| session.transcript().to_json());
    assert!(json.contains("outcome unknown, may have run"));
}

#[derive(Clone, Copy)]
struct Numbers;

impl TranscriptOf<u64> for Numbers {
    fn session_of<'r>(&self, _: &'r u64) -> Option<&'r str> {
        Some("s")
    }

    fn transcript_of<'r>(&self, _: &'r u64) -> Option<&'r str> {
        Some(r#"[{"role":"user","content":"hi"}]"#)
    }

    fn set_transcript(&self, _: &mut u64, _: String) {}
}

impl ModelEndOf<u64> for Numbers {
    fn model_end_of(&self, end: End<'_, u64>) -> ModelEnd {
        if end.is_ok() { ModelEnd::Answered } else { ModelEnd::Failed }
    }
}

#[test]
fn the_guard_keeps_the_laws() {
    Laws::new(|n| n, |n: &u64| n * n).check(|model| {
        let layer = ModelGuardLayer::builder(Sessions::new(Format::OpenAiChat));
        layer.policy(Numbers).build().layer(model)
    });
}

/// A request of one's own, and no annotations anywhere.
struct Prompt(String);

impl TranscriptOf<Prompt> for DefaultPolicy {
    fn session_of<'r>(&self, _: &'r Prompt) -> Option<&'r str> {
        None
    }

    fn transcript_of<'r>(&self, prompt: &'r Prompt) -> Option<&'r str> {
        Some(&prompt.0)
    }

    fn set_transcript(&self, prompt: &mut Prompt, repaired: String) {
        prompt.0 = repaired;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_session_calls_are_checked_all_the_same() {
    let sessions = Sessions::new(Format::OpenAiChat);
    let guarded = ServiceBuilder::new()
        .layer(ModelGuardLayer::new(sessions.clone()))
        .service_fn(async |_: Prompt| Ok::<_, BoxError>(r#"{"stop_reason":"refusal"}"#.to_owned()));
    let broken = of(Format::OpenAiChat, &corrupt(Format::OpenAiChat)).to_json();
    let error = guarded.clone().oneshot(Prompt(broken)).await.unwrap_err();
    assert!(error.is::<SessionCorrupt>());
    let error = guarded.oneshot(Prompt("[]".into())).await.unwrap_err();
    assert_eq!(error.to_string(), "Content filter triggered.");
    assert!(sessions.is_empty());
}

/// A response of one's own whose pieces come by a callback: neither a body nor a stream.
struct Callback(Vec<&'static str>);

impl BodyOf<Callback> for DefaultPolicy {
    type Watched = (Callback, BodyWatch);

    fn watched(&self, response: Callback, watch: BodyWatch) -> Self::Watched {
        (response, watch)
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_by_a_callback_is_driven_by_hand() {
    let events = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"I",
        "\"}}]}\n\ndata: {\"choices\":[{\"finish_reason\":\"content_",
        "filter\"}]}\n\n",
    ];
    let sessions = Sessions::new(Format::OpenAiChat);
    let model = tower::service_fn(move |_: ModelCall| async move {
        Ok::<_, BoxError>(Callback(events.to_vec()))
    });
    let guarded = ModelGuardLayer::streamed(sessions.clone()).layer(model);
    let sent = request(Format::OpenAiChat, &[user("hi")]);
    let (answer, mut watch) = guarded.oneshot(sent).await.unwrap();
    answer.0.iter().for_each(|piece| watch.see(piece.as_bytes()));
    sessions.with("s", |session, _| session.push(message(Format::OpenAiChat, says("I"))));
    assert!(!watch.is_over());
    let error = watch.end(None).unwrap();
    assert_eq!(error.to_string(), "Content filter triggered. Rolled back 1 messages.");
    assert!(watch.is_over() && watch.end(None).is_none());
    sessions.with("s", |session, _| assert!(session.transcript().is_empty()));
}
