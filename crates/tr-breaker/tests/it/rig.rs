//! A tool that does what it is told next, behind a breaker that is watched.
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tower::{Layer, ServiceExt};
use tr_breaker::{Breaker, BreakerHandle, BreakerLayer, Builder, CircuitOpen};
use tr_core::{
    BoxError, BreakerState, CallInfo, Event, FailureInfo, Observer, Params, Ran, ToolCall,
    ToolOutcome, Verdict, find,
};
use tr_testkit::tool::{Handle, Scripted, Step};

pub(crate) struct Rig {
    pub(crate) service: Breaker<Scripted<ToolCall, ToolOutcome>>,
    pub(crate) layer: BreakerLayer,
    pub(crate) asked: Handle<ToolCall>,
    pub(crate) steps: Arc<Mutex<VecDeque<Step<ToolOutcome>>>>,
    pub(crate) heard: Arc<Heard>,
}

impl Rig {
    pub(crate) fn new(builder: Builder) -> Self {
        let heard = Arc::new(Heard::default());
        let layer = builder.observer(heard.clone()).build().unwrap();
        let steps = Arc::new(Mutex::new(VecDeque::new()));
        let tool = Scripted::by({
            let steps = steps.clone();
            move |_, _: &ToolCall| steps.lock().unwrap().pop_front().unwrap_or_else(ok)
        });
        let asked = tool.handle();
        Self { service: layer.layer(tool), layer, asked, steps, heard }
    }

    /// What the tool does on the next calls; after that it succeeds.
    pub(crate) fn then(&self, steps: impl IntoIterator<Item = Step<ToolOutcome>>) -> &Self {
        self.steps.lock().unwrap().extend(steps);
        self
    }

    pub(crate) fn breaker(&self) -> BreakerHandle {
        self.layer.registry().breaker(call().parts().tool.key())
    }

    pub(crate) fn state(&self) -> BreakerState {
        self.breaker().state()
    }

    pub(crate) async fn call(&self) -> Result<ToolOutcome, BoxError> {
        self.service.clone().oneshot(call()).await
    }

    pub(crate) async fn calls(&self, steps: impl IntoIterator<Item = Step<ToolOutcome>>) {
        for step in steps {
            self.then([step]);
            let _ = self.call().await;
        }
    }

    /// Fails until it is open.
    pub(crate) async fn opened(self) -> Self {
        while self.state() == BreakerState::Closed {
            self.calls([failure("timeout")]).await;
        }
        self.heard.0.lock().unwrap().clear();
        self
    }
}

pub(crate) fn call() -> ToolCall {
    ToolCall::new("flight_search", Params::empty_object())
}

pub(crate) fn ok() -> Step<ToolOutcome> {
    Step::Ok(ToolOutcome::default())
}

pub(crate) fn failure(code: &'static str) -> Step<ToolOutcome> {
    Step::err(FailureInfo::new(code, Ran::Unknown, Verdict::TRANSIENT))
}

pub(crate) fn permanent() -> Step<ToolOutcome> {
    Step::err(FailureInfo::new("invalid_input", Ran::Yes, Verdict::Permanent))
}

pub(crate) fn refusal(result: &Result<ToolOutcome, BoxError>) -> &CircuitOpen {
    let error = result.as_ref().expect_err("refused");
    find(&**error).expect("by the breaker")
}

pub(crate) fn is_refused(result: &Result<ToolOutcome, BoxError>) -> bool {
    result.as_ref().is_err_and(|error| find::<CircuitOpen>(&**error).is_some())
}

/// Every event, as text.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Heard {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let text = match event {
            Event::Breaker { breaker, from, to } => {
                format!("{} {breaker}: {} to {}", call.tool, from.as_str(), to.as_str())
            }
            Event::BreakerRefused { breaker, state, shadow } => {
                let would = if *shadow { "would refuse" } else { "refuses" };
                format!("{} {breaker}: {} {would}", call.tool, state.as_str())
            }
            Event::BreakerUncounted => format!("{}: uncounted", call.tool),
            other => panic!("a breaker has nothing to do with {other:?}"),
        };
        self.0.lock().unwrap().push(text);
    }
}
