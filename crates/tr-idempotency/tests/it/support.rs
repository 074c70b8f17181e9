//! Calls, tools and observers for the tests.
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tower::ServiceExt;
use tower_layer::Layer;
use tr_core::{
    BoxError, CallInfo, DedupeMode, Effect, Event, FailureInfo, Observer, Params, Ran, ToolCall,
    ToolOutcome, Verdict, canonical::Key, failure_info,
};
use tr_idempotency::{Handle, Idempotency, IdempotencyLayer};
use tr_testkit::tool::{self, Scripted, Step};

pub(crate) type Tool = Scripted<ToolCall, ToolOutcome>;
pub(crate) type Guarded = Idempotency<Tool>;
pub(crate) type Asked = tool::Handle<ToolCall>;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A call of an undeclared, so mutating, tool.
pub(crate) fn pay(key: &str) -> ToolCall {
    with_params(key, r#"{"amount":5}"#)
}

pub(crate) fn with_params(key: &str, params: &str) -> ToolCall {
    unkeyed(params).idempotency_key(key)
}

pub(crate) fn unkeyed(params: &str) -> ToolCall {
    ToolCall::new("pay", Params::from_text(params).unwrap()).session("s").actor("ada")
}

pub(crate) fn best_effort(call: ToolCall) -> ToolCall {
    call.dedupe(DedupeMode::BestEffort)
}

pub(crate) fn read(call: ToolCall) -> ToolCall {
    call.effect(Effect::ReadOnly)
}

pub(crate) fn key_of(call: &ToolCall) -> Key {
    call.id().unwrap().unwrap().key
}

/// The default layer around a tool.
pub(crate) fn guarded(tool: Tool) -> (Guarded, Handle<ToolOutcome>, Asked) {
    guarded_by(&IdempotencyLayer::builder().build().unwrap(), tool)
}

pub(crate) fn guarded_by(
    layer: &IdempotencyLayer,
    tool: Tool,
) -> (Guarded, Handle<ToolOutcome>, Asked) {
    let asked = tool.handle();
    (layer.layer(tool), layer.handle(), asked)
}

/// Numbers its answers, and takes its time.
pub(crate) fn counting(takes: Duration) -> Tool {
    Scripted::by(move |n, _| Step::after(takes, Step::Ok(number(n))))
}

pub(crate) fn number(n: usize) -> ToolOutcome {
    ToolOutcome::success(serde_json::json!(n))
}

pub(crate) fn fails(code: &'static str, ran: Ran, verdict: Verdict) -> Step<ToolOutcome> {
    Step::err(FailureInfo::new(code, ran, verdict))
}

pub(crate) async fn call(service: &Guarded, call: ToolCall) -> Result<ToolOutcome, BoxError> {
    service.clone().oneshot(call).await
}

/// The call in a task of its own, which has been polled until it waits.
pub(crate) async fn start(
    service: &Guarded,
    call: ToolCall,
) -> tokio::task::JoinHandle<Result<ToolOutcome, BoxError>> {
    let task = tokio::spawn(service.clone().oneshot(call));
    settle().await;
    task
}

/// Lets every task get as far as it can without time passing.
pub(crate) async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

#[track_caller]
pub(crate) fn answer(end: Result<ToolOutcome, BoxError>) -> u64 {
    end.unwrap().content().unwrap().parse().unwrap()
}

/// Code, whether the tool ran, verdict.
#[track_caller]
pub(crate) fn refusal(end: Result<ToolOutcome, BoxError>) -> (String, Ran, Verdict) {
    let error = end.unwrap_err();
    let facts = failure_info(&*error).unwrap();
    (facts.code().to_owned(), facts.ran(), facts.verdict())
}

pub(crate) fn told(code: &str, ran: Ran, verdict: Verdict) -> (String, Ran, Verdict) {
    (code.to_owned(), ran, verdict)
}

/// Writes events down.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Vec<String>>);

impl Log {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub(crate) fn observer(self: &Arc<Self>) -> Arc<dyn Observer> {
        self.clone()
    }
}

impl Observer for Log {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{} {event:?}", call.tool));
    }
}
