//! The documented loop of an agent over the real stack: whatever becomes of a call, the session goes on.
use std::sync::{Arc, Mutex};
use tool_reliability::{
    ToolStack,
    integrity::{
        CycleMode, Format, Layer0Config, ModelCall, ModelGuardLayer, OUTCOME_UNKNOWN, Sessions,
        store::Memory,
    },
};
use tower::{Layer, ServiceExt};
use tr_core::{
    BoxError, CallInfo, Effect, Event, KeyRef, Observer, Params, SessionAction, ToolCall,
    failure_info,
};
use tr_testkit::{
    calls::{ScriptedTool, answers, reports},
    tool::{Scripted, Step},
};

const FORMAT: Format = Format::AnthropicMessages;
const MODES: [CycleMode; 2] = [CycleMode::Preserve, CycleMode::Rollback];

/// An agent with a session, its tools behind the stack, and its model behind the guard.
struct Agent {
    sessions: Sessions,
    stack: ToolStack,
    model: Scripted<ModelCall, String>,
    heard: Arc<Heard>,
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<SessionAction>>);

impl Observer for Heard {
    fn on_event(&self, _: &CallInfo<'_>, event: &Event<'_>) {
        if let Event::Session { action, .. } = event {
            self.0.lock().unwrap().push(*action);
        }
    }
}

impl Agent {
    fn new(mode: CycleMode) -> Self {
        let sessions = Sessions::builder(FORMAT).mode(mode).build().unwrap();
        let heard = Arc::new(Heard::default());
        let stack = ToolStack::builder().sessions(sessions.clone()).observer(heard.clone());
        let hello = r#"{"role":"assistant","content":"so","stop_reason":"end_turn"}"#;
        let model = Scripted::script([Step::Ok(hello.to_owned())]).then_repeat_last();
        let agent = Self { sessions, stack: stack.build().unwrap(), model, heard };
        agent.push(r#"{"role":"user","content":"go"}"#);
        agent
    }

    fn push(&self, raw: &str) {
        let message = FORMAT.read(raw).unwrap();
        self.sessions.with("s", |session, _| session.push(message));
    }

    /// The model's message, as docs/integrity.md has it pushed.
    fn uses(&self, uses: &[(&str, &str)]) {
        let blocks: Vec<_> = uses
            .iter()
            .map(|(id, name)| {
                format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#)
            })
            .collect();
        self.push(&format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(",")));
    }

    /// Asks the model; what it was sent.
    async fn ask(&self) -> String {
        let body = self.sessions.with("s", |session, _| session.transcript().to_json());
        let guarded = ModelGuardLayer::new(self.sessions.clone()).layer(self.model.clone());
        guarded.oneshot(ModelCall::new("s", body)).await.unwrap();
        self.model.handle().requests().pop().unwrap().body
    }
}

fn call(name: &str, id: &str) -> ToolCall {
    ToolCall::new(name, Params::empty_object()).session("s").tool_call_id(id)
}

fn code_of(error: &BoxError) -> &str {
    failure_info(&**error).unwrap().code()
}

#[tokio::test(start_paused = true)]
async fn what_the_loop_guard_refuses_is_read_by_the_model() {
    for mode in MODES {
        let agent = Agent::new(mode);
        let missing = reports("invalid_params", "Missing required parameter: path");
        let script = ScriptedTool::script([missing]).then_repeat_last();
        let asked = script.handle();
        let tool = agent.stack.service(script);
        let mut refused = None;
        for n in 0..5 {
            let id = format!("toolu_{n}");
            agent.uses(&[(&id, "read")]);
            let end = tool.clone().oneshot(call("read", &id)).await;
            let sent = agent.ask().await;
            if let Err(error) = end {
                assert_eq!(code_of(&error), "loop_detected");
                let block = &sent[sent.find(&format!(r#""tool_use_id":"{id}""#)).unwrap()..];
                assert!(block.contains("[LOOP DETECTED]"), "{mode:?}: {sent}");
                assert!(block.contains(r#""is_error":true"#), "{mode:?}: {sent}");
                refused.get_or_insert(n);
            }
        }
        // Every refused call is answered, and the tool ran twice.
        assert_eq!((refused, asked.calls()), (Some(2), 2), "{mode:?}");
        let heard = agent.heard.0.lock().unwrap();
        assert_eq!(*heard, [SessionAction::RecordedFailure; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_open_breaker_refuses_is_read_and_a_siblings_payment_is_seen() {
    for mode in MODES {
        for payment_first in [true, false] {
            let agent = Agent::new(mode);
            let tool = agent.stack.service(ScriptedTool::by(|_, _| answers("receipt 7")));
            // Once, so that its breaker is there to be forced.
            let probe = ToolCall::new("search", Params::empty_object()).effect(Effect::ReadOnly);
            tool.clone().oneshot(probe).await.unwrap();
            agent.stack.breakers().get(KeyRef::new("search")).unwrap().force_open();

            agent.uses(&[("toolu_s", "search"), ("toolu_p", "pay")]);
            let search = tool.clone().oneshot(call("search", "toolu_s"));
            let pay = tool.clone().oneshot(call("pay", "toolu_p"));
            let (refused, paid) = if payment_first {
                let paid = pay.await;
                (search.await, paid)
            } else {
                (search.await, pay.await)
            };
            paid.unwrap();
            let refused = refused.unwrap_err();
            assert_eq!(code_of(&refused), "circuit_open");
            let sent = agent.ask().await;
            assert!(sent.contains("receipt 7"), "{mode:?}: {sent}");
            let words = serde_json::to_string(&refused.to_string()).unwrap();
            assert!(sent.contains(&words), "{mode:?}: {sent}\n{words}");
            assert!(!sent.contains(OUTCOME_UNKNOWN), "{sent}");
        }
    }
}

/// The caller gives up; nobody knows what the tool did.
#[tokio::test(start_paused = true)]
async fn what_was_cut_off_is_told_as_unknown() {
    for mode in MODES {
        let agent = Agent::new(mode);
        let tool = agent.stack.service(ScriptedTool::script([Step::Hang]).then_repeat_last());
        agent.uses(&[("toolu_1", "pay")]);
        let paying = tool.oneshot(call("pay", "toolu_1"));
        tokio::time::timeout(std::time::Duration::from_secs(1), paying).await.unwrap_err();
        let sent = agent.ask().await;
        assert!(sent.contains(OUTCOME_UNKNOWN), "{mode:?}: {sent}");
        assert_eq!(*agent.heard.0.lock().unwrap(), [SessionAction::Abandoned]);
    }
}

/// What is done when a session is loaded is heard by the stack's observers, too.
#[tokio::test]
async fn a_session_that_is_repaired_as_it_is_loaded_is_told() {
    let store = Memory::new();
    let of = |auto_repair| {
        let mut config = Layer0Config::default();
        config.auto_repair = auto_repair;
        Sessions::builder(FORMAT).config(config).store(store.clone()).build().unwrap()
    };
    let ghost =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"g","content":"1"}]}"#;
    let ghost = FORMAT.read(ghost).unwrap();
    of(false).change("s", |session, _| session.push(ghost)).await.unwrap();

    let (sessions, heard) = (of(true), Arc::new(Heard::default()));
    ToolStack::builder().sessions(sessions.clone()).observer(heard.clone()).build().unwrap();
    assert!(sessions.load("s").await.unwrap().valid);
    assert_eq!(*heard.0.lock().unwrap(), [SessionAction::Repaired]);
}
