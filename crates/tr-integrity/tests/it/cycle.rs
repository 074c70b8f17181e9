//! The layer around a tool.
use crate::common::{FORMATS, MODES, json, message, push_step, user, uses};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{
    Answer, BoxError, CallInfo, CycleRef, DefaultPolicy, End, Event, FailureInfo, Json, Observer,
    Params, Ran, ResponsePolicy, ToolCall, ToolError, ToolOutcome, TranscriptPolicy, Verdict, code,
};
use tr_integrity::{
    CycleMode, CycleState, Format, IntegrityLayer, Layer0Config, Message, OUTCOME_UNKNOWN, Sessions,
};
use tr_testkit::{
    drops,
    laws::Laws,
    tool::{Scripted, Step},
};

fn call(id: &str) -> ToolCall {
    let params = Params::from_text(r#"{"eur": 5}"#).unwrap();
    ToolCall::new("pay", params).session("s").tool_call_id(id)
}

fn with_mode(format: Format, mode: CycleMode) -> Sessions {
    Sessions::builder(format).mode(mode).build().unwrap()
}

fn failing(ran: Ran) -> Scripted<ToolCall, ToolOutcome> {
    Scripted::script([Step::err(FailureInfo::new(code::TIMEOUT, ran, Verdict::TRANSIENT))])
        .then_repeat_last()
}

#[tokio::test(start_paused = true)]
async fn si_10_successful_cycle_persists_both() {
    for format in FORMATS {
        for mode in MODES {
            let sessions = with_mode(format, mode);
            let seen = sessions.clone();
            let tool = ServiceBuilder::new()
                .layer(IntegrityLayer::new(sessions.clone()))
                .service_fn(move |_: ToolCall| {
                    let seen = seen.clone();
                    async move {
                        // The intent is recorded, and nothing is visible yet.
                        seen.with("s", |session, _| {
                            assert!(session.transcript().is_empty());
                            let [cycle] = session.cycles() else { panic!() };
                            assert_eq!(cycle.state, CycleState::Executing);
                            assert_eq!(&*cycle.tool_use.input, r#"{"eur": 5}"#);
                            assert_eq!(session.active().unwrap().id, cycle.checkpoint);
                        });
                        Ok::<_, BoxError>(ToolOutcome::success(Json::from_text("\"paid\"")?))
                    }
                });
            tool.oneshot(call("toolu_1")).await.unwrap();
            assert_eq!(
                json(&sessions),
                match format {
                    Format::AnthropicMessages => {
                        r#"[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"pay","input":{"eur": 5}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"paid"}]}]"#
                    }
                    // What begins a session there is the user's.
                    Format::Gemini => {
                        r#"[{"role":"user","parts":[{"text":"[what came before is not in this session]"}]},{"role":"model","parts":[{"functionCall":{"id":"toolu_1","name":"pay","args":{"eur": 5}}}]},{"role":"user","parts":[{"functionResponse":{"id":"toolu_1","name":"pay","response":{"output":"paid"}}}]}]"#
                    }
                    Format::OpenAiResponses => {
                        r#"[{"type":"function_call","call_id":"toolu_1","name":"pay","arguments":"{\"eur\": 5}"},{"type":"function_call_output","call_id":"toolu_1","output":"paid"}]"#
                    }
                    _ => {
                        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"pay","arguments":"{\"eur\": 5}"}}]},{"role":"tool","tool_call_id":"toolu_1","content":"paid"}]"#
                    }
                }
            );
            sessions.with("s", |session, _| {
                assert!(session.cycles().is_empty());
                assert!(session.latest().unwrap().is_committed());
            });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn si_11_failed_cycle_leaves_nothing_partial() {
    for format in FORMATS {
        for mode in MODES {
            for ran in [Ran::No, Ran::Yes, Ran::Unknown] {
                let sessions = with_mode(format, mode);
                let tool = IntegrityLayer::new(sessions.clone()).layer(failing(ran));
                let error = tool.oneshot(call("toolu_1")).await.unwrap_err();
                assert_eq!(tr_core::failure_info(&*error).unwrap().ran(), ran);
                let json = json(&sessions);
                match (mode, ran) {
                    (CycleMode::Rollback, _) | (_, Ran::No) => assert_eq!(json, "[]"),
                    _ => {
                        assert!(json.contains("pay") && json.contains(code::TIMEOUT), "{json}");
                        assert_eq!(json.contains(OUTCOME_UNKNOWN), ran == Ran::Unknown, "{json}");
                        let is_error = json.contains(r#""is_error":true"#);
                        assert_eq!(is_error, format == Format::AnthropicMessages);
                    }
                }
                sessions.with("s", |session, _| {
                    assert_eq!((session.cycles().len(), session.active()), (0, None));
                });
            }
        }
    }
}

/// What a tool answers is recorded as it is, a failure too: 002's `isError`.
#[tokio::test(start_paused = true)]
async fn si_11_a_failure_that_the_tool_reports_is_its_answer() {
    for mode in MODES {
        let sessions = with_mode(Format::AnthropicMessages, mode);
        let failure = ToolOutcome::failure(ToolError::new("enoent", "no such file"));
        let tool = Scripted::script([Step::Ok(failure)]);
        IntegrityLayer::new(sessions.clone()).layer(tool).oneshot(call("a")).await.unwrap();
        let json = json(&sessions);
        assert!(json.contains(r#""content":"no such file","is_error":true"#), "{json}");
    }
}

#[tokio::test(start_paused = true)]
async fn si_12_content_filter_while_the_layer_waits_for_its_tool() {
    for mode in MODES {
        let sessions = with_mode(Format::AnthropicMessages, mode);
        let slow = Step::after(Duration::from_secs(1), Step::Ok(ToolOutcome::default()));
        let tool = IntegrityLayer::new(sessions.clone()).layer(Scripted::script([slow]));
        let filter = async {
            sessions.with("s", |session, now| {
                let before = session.checkpoint(tr_integrity::Operation::ApiCall, now).id;
                session.push(message(
                    Format::AnthropicMessages,
                    uses(Format::AnthropicMessages, &["a"]),
                ));
                before
            })
        };
        let before = filter.await;
        let running = tokio::spawn(tool.oneshot(call("a")));
        tokio::time::sleep(Duration::from_millis(500)).await;
        sessions.with("s", |session, now| {
            let filtered = tr_integrity::ModelEnd::Filtered;
            let recovery = session.handle_error(filtered, Some(&before), now);
            assert_eq!(recovery.message, "Content filter triggered. Rolled back 1 messages.");
            assert!(session.transcript().is_empty());
        });
        running.await.unwrap().unwrap();
        let json = json(&sessions);
        assert_eq!(json.matches("tool_use_id").count(), 1, "{json}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_the_session_stays_valid() {
    for mode in MODES {
        for polls in 0..4 {
            let sessions = with_mode(Format::OpenAiChat, mode);
            let steps = (0..2).fold(Step::Ok(ToolOutcome::default()), |then, _| {
                Step::after(Duration::from_millis(1), then)
            });
            let tool = Scripted::script([steps]);
            let asked = tool.handle();
            let mut tool = IntegrityLayer::new(sessions.clone()).layer(tool);
            let mut running = tokio_test::task::spawn(tool.ready().await.unwrap().call(call("a")));
            let mut ended = false;
            for _ in 0..polls {
                ended = ended || running.poll().is_ready();
                tokio::time::advance(Duration::from_millis(1)).await;
            }
            drop(running);
            assert_eq!(asked.in_flight(), 0);
            sessions.with("s", |session, now| {
                assert_eq!(
                    session.cycles().iter().filter(|cycle| cycle.abandoned).count(),
                    usize::from(!ended)
                );
                session.recover(now);
                assert_eq!((session.cycles().len(), session.active()), (0, None));
            });
            let json = json(&sessions);
            let is_unknown = json.contains(OUTCOME_UNKNOWN);
            assert_eq!(is_unknown, !ended && mode == CycleMode::Preserve, "{polls}: {json}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_anywhere_nothing_is_left() {
    let sessions = Sessions::new(Format::AnthropicMessages);
    let tool = Scripted::by(|n, _: &ToolCall| match n % 4 {
        0 => Step::Hang,
        1 => Step::err("down"),
        2 => Step::Ok(ToolOutcome::default()),
        _ => Step::after(Duration::from_millis(5), Step::Ok(ToolOutcome::default())),
    })
    .unlogged();
    let asked = tool.handle();
    let tool = IntegrityLayer::new(sessions.clone()).layer(tool);
    let mut n = 0;
    let report = drops::at_random(11, 300, || {
        n += 1;
        tool.clone().oneshot(call(&format!("toolu_{n}")))
    })
    .await;
    assert_eq!(report.finished + report.dropped + report.stuck, 300);
    assert_eq!((asked.in_flight(), asked.waiting()), (0, 0));
    sessions.with("s", |session, now| {
        session.recover(now);
        assert_eq!(session.cycles().len(), 0);
        assert_eq!(session.active(), None);
    });
    // Every call that reached the tool is recorded once.
    assert_eq!(json(&sessions).matches("tool_use_id").count(), asked.calls());
}

#[tokio::test(start_paused = true)]
async fn a_panicking_tool_leaves_an_intent() {
    for step in [Step::Panic, Step::PanicInCall] {
        let sessions = Sessions::new(Format::AnthropicMessages);
        let tool = Scripted::<ToolCall, ToolOutcome>::script([step]);
        let tool = IntegrityLayer::new(sessions.clone()).layer(tool);
        assert!(tokio::spawn(tool.oneshot(call("a"))).await.unwrap_err().is_panic());
        sessions.with("s", |session, now| assert_eq!(session.recover(now), 1));
        assert!(json(&sessions).contains(OUTCOME_UNKNOWN));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_session_pass_through_untouched() {
    let off = Layer0Config::default();
    let off = serde_json::to_value(off).map(|mut off| {
        off["enabled"] = false.into();
        off
    });
    let off = serde_json::from_value(off.unwrap()).unwrap();
    let off = Sessions::builder(Format::OpenAiChat).config(off).build().unwrap();
    let on = Sessions::new(Format::OpenAiChat);
    let no_session = ToolCall::new("pay", Params::empty_object()).tool_call_id("a");
    let no_id = ToolCall::new("pay", Params::empty_object()).session("s");
    for (sessions, call) in [(&on, no_session), (&on, no_id), (&off, call("a"))] {
        let tool = Scripted::script([Step::Ok(ToolOutcome::default())]);
        IntegrityLayer::new(sessions.clone()).layer(tool).oneshot(call).await.unwrap();
        assert!(sessions.is_empty());
    }
    let tool = Scripted::script([Step::Ok(ToolOutcome::default())]);
    IntegrityLayer::builder().build().layer(tool).oneshot(call("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_of_one_step() {
    for format in FORMATS {
        let sessions = Sessions::new(format);
        sessions.with("s", |session, _| {
            session.push(message(format, user("go")));
            push_step(session, &["a", "b", "c"]);
        });
        let tool = Scripted::by(|n, call: &ToolCall| {
            let id = format!("{:?}", call.parts().tool_call_id.as_deref().unwrap());
            let answer = ToolOutcome::success(Json::from_text(id).unwrap());
            Step::after(Duration::from_millis(30 - 10 * n as u64), Step::Ok(answer))
        });
        let tool = IntegrityLayer::new(sessions.clone()).layer(tool);
        let calls = ["a", "b", "c"].map(|id| tokio::spawn(tool.clone().oneshot(call(id))));
        for call in calls {
            call.await.unwrap().unwrap();
        }
        sessions.with("s", |session, _| {
            assert_eq!(session.validator().findings(), []);
            assert_eq!(session.validator().pending().count(), 0);
            let answered: Vec<_> =
                session.transcript().messages().iter().flat_map(Message::tool_results).collect();
            assert_eq!(answered, ["a", "b", "c"]);
        });
    }
}

#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let session = call.session.unwrap_or("-");
        if let Event::Session { action, removed } = event {
            self.0.lock().unwrap().push(format!(
                "{session} {} {} {removed}",
                call.tool,
                action.as_str()
            ));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failed_cycles_are_told() {
    let notes = Arc::new(Notes::default());
    let sessions = Sessions::new(Format::OpenAiChat);
    let layer = IntegrityLayer::builder().sessions(sessions).observer(notes.clone()).build();
    for ran in [Ran::No, Ran::Unknown] {
        layer.layer(failing(ran)).oneshot(call("a")).await.unwrap_err();
    }
    let mut hanging = layer.layer(Scripted::<_, ToolOutcome>::script([Step::Hang]));
    drop(hanging.ready().await.unwrap().call(call("b")));
    let told = notes.0.lock().unwrap();
    assert_eq!(*told, ["s pay rolled_back 0", "s pay recorded_failure 0", "s pay abandoned 0"]);
}

/// A request type of one's own.
struct Query(&'static str);

struct Rows(usize);

impl ResponsePolicy<Rows> for DefaultPolicy {}

impl TranscriptPolicy<Query, Rows> for DefaultPolicy {
    fn cycle<'r>(&self, query: &'r Query) -> Option<CycleRef<'r>> {
        Some(CycleRef { session: "s", tool_use_id: query.0, name: "query", input: "{}" })
    }

    fn answer<'r>(&self, end: End<'r, Rows>) -> Answer<'r> {
        match end {
            Ok(rows) => Answer {
                content: format!("{} rows", rows.0).into(),
                is_error: false,
                ran: Ran::Yes,
            },
            Err(error) => {
                Answer { content: error.to_string().into(), is_error: true, ran: Ran::Unknown }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_of_ones_own_needs_two_answers() {
    let sessions = Sessions::new(Format::OpenAiChat);
    let database = ServiceBuilder::new()
        .layer(IntegrityLayer::new(sessions.clone()))
        .service(service_fn(async |_: Query| Ok::<_, BoxError>(Rows(3))));
    assert_eq!(database.oneshot(Query("q")).await.unwrap().0, 3);
    assert!(json(&sessions).contains("3 rows"));
}

/// Numbers, each a cycle of its own.
#[derive(Clone, Copy)]
struct Numbers;

impl ResponsePolicy<u64> for Numbers {}

impl TranscriptPolicy<u64, u64> for Numbers {
    fn cycle<'r>(&self, n: &'r u64) -> Option<CycleRef<'r>> {
        let session = if n.is_multiple_of(2) { "even" } else { "odd" };
        Some(CycleRef { session, tool_use_id: "n", name: "square", input: "{}" })
    }

    fn answer<'r>(&self, end: End<'r, u64>) -> Answer<'r> {
        let content = end.map_or_else(ToString::to_string, u64::to_string).into();
        Answer { content, is_error: end.is_err(), ran: Ran::Yes }
    }
}

#[test]
fn the_layer_keeps_the_laws() {
    for format in FORMATS {
        Laws::new(|n| n, |n: &u64| n * n).check(|tool| {
            let layer = IntegrityLayer::builder().sessions(Sessions::new(format));
            layer.policy(Numbers).build().layer(tool)
        });
    }
}
