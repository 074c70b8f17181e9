//! What the tests of this crate share: calls, failures, and an observer that remembers.
use std::{
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};
use tr_core::{
    BoxError, CallInfo, CallParts, Effect, Event, FailureInfo, Observer, Params, Ran,
    RetryOverride, ToolCall, ToolOutcome, Verdict, code,
};
use tr_retry::{RetryConfig, RetryExhausted, RetryLayer};
use tr_testkit::tool::{Scripted, Step};

pub(crate) type Tool = Scripted<ToolCall, ToolOutcome>;

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn call(effect: Effect) -> ToolCall {
    ToolCall::new("flight_search", Params::empty_object()).effect(effect)
}

pub(crate) fn search() -> ToolCall {
    call(Effect::ReadOnly)
}

/// A call that brings its own changes to the policy.
pub(crate) fn asking(changes: RetryOverride) -> ToolCall {
    let mut parts = CallParts::new("flight_search", Params::empty_object());
    (parts.effect, parts.retry) = (Effect::ReadOnly, Some(changes));
    parts.into()
}

pub(crate) fn ok() -> Step<ToolOutcome> {
    Step::Ok(ToolOutcome::default())
}

pub(crate) fn timeout() -> Step<ToolOutcome> {
    transient(code::TIMEOUT, Ran::Unknown)
}

pub(crate) fn transient(code: &'static str, ran: Ran) -> Step<ToolOutcome> {
    Step::err(FailureInfo::new(code, ran, Verdict::TRANSIENT).because(format!("{code} it is")))
}

pub(crate) fn permanent() -> Step<ToolOutcome> {
    Step::err(FailureInfo::new("bad_request", Ran::Yes, Verdict::Permanent).because("no such city"))
}

pub(crate) fn busy(retry_after: Duration) -> Step<ToolOutcome> {
    let verdict = Verdict::Transient { retry_after: Some(retry_after) };
    Step::err(FailureInfo::new("busy", Ran::No, verdict))
}

/// A layer without jitter.
pub(crate) fn exact(mut config: RetryConfig) -> RetryLayer {
    config.jitter = (1.0, 1.0);
    RetryLayer::builder().config(config).build().unwrap()
}

pub(crate) fn exhausted(error: &BoxError) -> &RetryExhausted {
    let error: &(dyn Error + 'static) = &**error;
    error.downcast_ref().unwrap_or_else(|| panic!("not an error of retry's own: {error}"))
}

/// One line for each event.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Heard {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let tool = call.tool;
        self.0.lock().unwrap().push(match *event {
            Event::Retry { attempt, delay, retry_after, reason, latency } => {
                assert_eq!(call.attempt, attempt);
                let asked = retry_after.map_or_else(String::new, |asked| format!(", {asked:?} of it asked for"));
                format!("{tool}: {attempt} failed with {reason} in {latency:?}, again in {delay:?}{asked}")
            }
            Event::RetryRefused { attempt, why } => {
                assert_eq!(call.attempt, attempt);
                format!("{tool}: {attempt} failed, not again: {why}")
            }
            ref other => panic!("unexpected: {other:?}"),
        });
    }
}
