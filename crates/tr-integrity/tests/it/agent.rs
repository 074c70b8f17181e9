//! The documented loop of an agent: whatever becomes of its calls, in every order, the model's next
//! call is accepted.
use crate::common::{FORMATS, message, push_step, says, user};
use proptest::{collection::vec, prelude::*};
use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex},
};
use tokio::sync::oneshot;
use tokio_test::task::{Spawn, spawn};
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{BoxError, FailureInfo, Json, Params, Ran, ToolCall, ToolOutcome, Verdict};
use tr_integrity::{
    ContentFiltered, CycleMode, Format, IntegrityLayer, Message, ModelCall, ModelGuardLayer, Role,
    SessionCorrupt, Sessions, Transcript, Validator, store::Memory,
};

/// How a call of a tool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    Rejected,
    Failed(Ran),
    /// Its future is dropped.
    CutOff,
}

/// How a call of the model ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    /// With so many uses, pushed while the answer still comes, or behind it.
    Asks(usize, bool),
    Filtered,
    Failed,
    CutOff,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask,
    Model(Model),
    /// The answer that still comes has uses already, as in a stream.
    Early(usize),
    Tool(usize, End),
    Say,
}

fn event() -> impl Strategy<Value = Event> {
    let ran = prop_oneof![Just(Ran::Yes), Just(Ran::Unknown)];
    let end = prop_oneof![
        3 => Just(End::Answered),
        3 => Just(End::Rejected),
        1 => ran.prop_map(End::Failed),
        2 => Just(End::CutOff),
    ];
    let model = prop_oneof![
        4 => (0..4_usize, any::<bool>()).prop_map(|(uses, early)| Model::Asks(uses, early)),
        1 => Just(Model::Filtered),
        1 => Just(Model::Failed),
        1 => Just(Model::CutOff),
    ];
    prop_oneof![
        3 => Just(Event::Ask),
        3 => model.prop_map(Event::Model),
        1 => (1..3_usize).prop_map(Event::Early),
        6 => (0..9_usize, end).prop_map(|(at, end)| Event::Tool(at, end)),
        1 => Just(Event::Say),
    ]
}

type Running<T> = Spawn<Pin<Box<dyn Future<Output = Result<T, BoxError>>>>>;
type Ends<T> = Arc<Mutex<HashMap<String, oneshot::Sender<Result<T, BoxError>>>>>;

struct Agent {
    sessions: Sessions,
    format: Format,
    tools: Vec<(String, Running<ToolOutcome>)>,
    tool_ends: Ends<ToolOutcome>,
    model: Option<Running<String>>,
    model_ends: Ends<String>,
    sent: Arc<Mutex<Option<String>>>,
    uses: usize,
    /// What tools did and the session must not forget.
    answered: Vec<String>,
    rejected: Vec<String>,
}

fn answer_to<T: Send + 'static>(
    ends: &Ends<T>,
    id: String,
) -> impl Future<Output = Result<T, BoxError>> + use<T> {
    let (send, receive) = oneshot::channel();
    ends.lock().unwrap().insert(id, send);
    async move { receive.await.expect("the test ends each call") }
}

impl Agent {
    fn new(format: Format, mode: CycleMode, is_durable: bool) -> Self {
        let sessions = Sessions::builder(format).mode(mode);
        let sessions = if is_durable { sessions.store(Memory::new()) } else { sessions };
        let sessions = sessions.build().unwrap();
        let (tools, uses, model, sent) = (Vec::new(), 0, None, Arc::default());
        let (answered, rejected) = (Vec::new(), Vec::new());
        let (tool_ends, model_ends) = (Arc::default(), Arc::default());
        Self {
            sessions,
            format,
            tools,
            tool_ends,
            model,
            model_ends,
            sent,
            uses,
            answered,
            rejected,
        }
    }

    fn say(&self) {
        self.sessions.with("s", |session, _| session.push(message(self.format, user("go on"))));
    }

    /// Whether a tool still runs whose result the transcript waits for.
    fn waits(&self) -> bool {
        self.sessions.with("s", |session, _| {
            session.validator().pending().any(|id| self.tools.iter().any(|(tool, _)| tool == id))
        })
    }

    fn ask(&mut self) {
        let speaks = self.sessions.with("s", |session, _| {
            let last = session.transcript().messages().last().map(Message::role);
            last == Some(Role::Assistant) && session.validator().pending().next().is_none()
        });
        if speaks || self.sessions.with("s", |session, _| session.transcript().is_empty()) {
            self.say();
        }
        let body = self.sessions.with("s", |session, _| session.transcript().to_json());
        let (ends, sent) = (self.model_ends.clone(), self.sent.clone());
        sent.lock().unwrap().take();
        let model = service_fn(move |call: ModelCall| {
            *sent.lock().unwrap() = Some(call.body);
            answer_to(&ends, "model".into())
        });
        let guarded = ModelGuardLayer::new(self.sessions.clone()).layer(model);
        let mut asked: Running<String> =
            spawn(Box::pin(guarded.oneshot(ModelCall::new("s", body))));
        if let std::task::Poll::Ready(end) = asked.poll() {
            let error = end.unwrap_err();
            let why = error.downcast_ref::<SessionCorrupt>().map(SessionCorrupt::findings);
            panic!("the model was not called: {error} {why:?}");
        }
        let sent = self.sent.lock().unwrap().clone().expect("the model was called");
        let sent = Transcript::read_as(self.format, &sent).unwrap();
        let validator = Validator::of(&sent);
        assert!(validator.is_valid() && !validator.waits(), "{}", sent.to_json());
        self.model = Some(asked);
    }

    /// The agent's message with the model's uses, and the calls of their tools.
    fn step(&mut self, uses: usize) {
        let ids: Vec<_> = (0..uses).map(|n| format!("u{}_{n}", self.uses)).collect();
        self.uses += 1;
        self.sessions.with("s", |session, _| {
            if uses == 0 {
                session.push(message(self.format, says("done")));
            } else {
                push_step(session, &ids.iter().map(String::as_str).collect::<Vec<_>>());
            }
        });
        for id in ids {
            let ends = self.tool_ends.clone();
            let tool = service_fn(move |call: ToolCall| {
                answer_to(&ends, call.parts().tool_call_id.as_deref().unwrap().into())
            });
            let call = ToolCall::new("read", Params::empty_object()).session("s");
            let tool = IntegrityLayer::new(self.sessions.clone()).layer(tool);
            let mut running: Running<ToolOutcome> =
                spawn(Box::pin(tool.oneshot(call.tool_call_id(id.as_str()))));
            assert!(running.poll().is_pending());
            self.tools.push((id, running));
        }
    }

    fn model_ends(&mut self, end: Model) {
        let Some(mut asked) = self.model.take() else { return };
        let send = self.model_ends.lock().unwrap().remove("model").unwrap();
        let answer = match end {
            Model::CutOff => return drop(asked),
            Model::Failed => Err("503".into()),
            Model::Filtered => Ok(r#"{"type":"error","error":{"type":"content_filtered"}}"#.into()),
            Model::Asks(uses, early) => {
                if early {
                    self.step(uses);
                }
                Ok(r#"{"role":"assistant","stop_reason":"end_turn"}"#.into())
            }
        };
        send.send(answer).unwrap();
        let ended = asked.poll();
        let std::task::Poll::Ready(ended) = ended else { panic!("it has ended") };
        match end {
            Model::Asks(uses, false) => self.step(uses),
            Model::Filtered => assert!(ended.unwrap_err().is::<ContentFiltered>()),
            _ => {}
        }
    }

    fn tool_ends(&mut self, at: usize, end: End) {
        if self.tools.is_empty() {
            return;
        }
        let (id, mut running) = self.tools.remove(at % self.tools.len());
        let send = self.tool_ends.lock().unwrap().remove(&id).unwrap();
        let facts =
            |ran| -> BoxError { FailureInfo::new("broken", ran, Verdict::Permanent).into() };
        let answer = match end {
            End::CutOff => return drop(running),
            End::Answered => {
                let text = format!("answer {id};");
                let content = Json::from_text(format!("{text:?}")).unwrap();
                self.answered.push(text);
                Ok(ToolOutcome::success(content))
            }
            End::Rejected => {
                self.rejected.push(id);
                Err(Rejected(FailureInfo::new("loop_detected", Ran::No, Verdict::Permanent)).into())
            }
            End::Failed(ran) => Err(facts(ran)),
        };
        send.send(answer).unwrap();
        assert!(running.poll().is_ready());
    }

    fn happens(&mut self, event: Event) {
        match event {
            // As documented, the model is asked once the tools of its step have ended.
            Event::Ask if self.model.is_none() && !self.waits() => self.ask(),
            Event::Say if self.model.is_none() => self.say(),
            Event::Early(uses) if self.model.is_some() && !self.waits() => self.step(uses),
            Event::Model(Model::Asks(..)) if self.waits() => {}
            Event::Model(end) => self.model_ends(end),
            Event::Tool(at, end) => self.tool_ends(at, end),
            Event::Ask | Event::Say | Event::Early(_) => {}
        }
    }
}

/// A refusal in words of its own.
#[derive(Debug)]
struct Rejected(FailureInfo);

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[LOOP DETECTED] stop it")
    }
}

impl std::error::Error for Rejected {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(tr_testkit::rounds(100, 4_000) as u32) })]

    #[test]
    fn the_next_call_of_the_model_is_accepted(events in vec(event(), 0..40), rollback: bool, is_durable: bool) {
        let mode = if rollback { CycleMode::Rollback } else { CycleMode::Preserve };
        for format in FORMATS {
            let mut agent = Agent::new(format, mode, is_durable);
            agent.say();
            for event in &events {
                agent.happens(*event);
                agent.sessions.with("s", |session, _| {
                    let json = session.transcript().to_json();
                    assert!(session.validate().valid, "{event:?}: {:?} {json}", session.validate());
                });
            }
            agent.model_ends(Model::CutOff);
            while !agent.tools.is_empty() {
                agent.tool_ends(0, End::CutOff);
            }
            agent.ask();
            let sent = agent.sent.lock().unwrap().clone().unwrap();
            if mode == CycleMode::Preserve {
                for answer in &agent.answered {
                    prop_assert_eq!(sent.matches(answer).count(), 1, "{}: {}", answer, sent);
                }
            }
            // A use that stands is answered by its refusal.
            let sent = Transcript::read_as(format, &sent).unwrap();
            let used = sent.messages().iter().flat_map(Message::tool_uses);
            let refused = used.filter(|id| agent.rejected.iter().any(|it| it == id)).count();
            let told = sent.to_json().matches("[LOOP DETECTED] stop it").count();
            prop_assert_eq!(told, refused, "{}", sent.to_json());
        }
    }
}
