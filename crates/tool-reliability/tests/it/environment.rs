//! The switches that an operator sets in the environment.
use crate::common::{around, search as call};
use std::{
    error::Error,
    sync::{Arc, Mutex},
};
use tool_reliability::{
    Environment, Hook, Mode, Rollout, Share, Stage, ToolStack, adapter::ToolFailed, environment,
    idempotency::DerivedKeys, loopguard::Noted,
};
use tower::ServiceExt;
use tr_core::{
    BoxError, BreakerState, Effect, KeyRef, Ran, ToolCall, ToolOutcome, Verdict, code,
    failure_info, find,
};
use tr_testkit::{
    calls::{answers, fails, reports},
    tool::{Failure, Step},
};

fn said(variable: &'static str) -> Environment {
    Environment::read(move |name| (name == variable).then(|| "off".into()))
}

#[tokio::test(start_paused = true)]
async fn open_mode_off_lets_breakers_count_and_never_refuse() {
    let stack =
        ToolStack::builder().environment(said("TOOL_RELIABILITY_OPEN_MODE")).build().unwrap();
    let (tool, handle) = around(&stack, [fails("reset", Verdict::TRANSIENT, Ran::Unknown)]);
    for turn in 0..9 {
        let call = call("s").effect(Effect::Mutating).turn(turn.to_string());
        let error = tool.clone().oneshot(call).await.unwrap_err();
        assert_ne!(failure_info(&*error).unwrap().code(), code::CIRCUIT_OPEN);
    }
    assert_eq!(handle.calls(), 9);
    let breaker = stack.breakers().get(KeyRef::new("search")).unwrap();
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker.force_open();
    tool.oneshot(call("s").turn("last")).await.unwrap_err();
    assert!(handle.calls() > 9, "an operator's order is counted, and not done either");
}

#[tokio::test(start_paused = true)]
async fn derive_idempotency_off_derives_no_keys() {
    for (environment, calls) in
        [(Environment::default(), 1), (said("TOOL_RELIABLE_DERIVE_IDEMPOTENCY"), 2)]
    {
        let stack = ToolStack::builder()
            .idempotency(|it| it.derived_keys(DerivedKeys::Session))
            .environment(environment)
            .build()
            .unwrap();
        let (tool, handle) = around(&stack, [answers("ok")]);
        for _ in 0..2 {
            tool.clone().oneshot(call("s")).await.unwrap();
        }
        assert_eq!(handle.calls(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn enabled_off_is_off_whatever_the_rollout_says() {
    let stack = ToolStack::builder()
        .environment(said(environment::ENABLED))
        .rollout(Rollout::new(Mode::Enforce))
        .build()
        .unwrap();
    let (tool, handle) = around(&stack, [fails("http_503", Verdict::TRANSIENT, Ran::No)]);
    tool.clone().oneshot(call("s")).await.unwrap_err();
    assert_eq!(handle.calls(), 1);
    let all = Stage::part(Mode::Enforce, Share::ALL, Mode::Off);
    stack.kill_switch().set_rollout(Rollout::new(all));
    tool.clone().oneshot(call("s")).await.unwrap_err();
    assert_eq!(handle.calls(), 2);
    stack.kill_switch().set(true);
    tool.oneshot(call("s")).await.unwrap_err();
    assert_eq!(handle.calls(), 6);
}

/// A tool's own error, which its callers know.
#[derive(Debug)]
struct Own(&'static str);

impl std::fmt::Display for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Own {}

fn own(text: &'static str) -> Step<ToolOutcome> {
    Step::err(Own(text))
}

/// What a scripted tool fails with.
fn is_own(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<Failure>().and_then(Error::source).is_some_and(<dyn Error>::is::<Own>)
}

fn unnormalised() -> ToolStack {
    ToolStack::builder().environment(said("TOOL_RELIABILITY_NORMALISE")).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn unnormalised_a_tools_own_failure_passes_as_it_is() {
    for (stack, passes) in [(ToolStack::default(), false), (unnormalised(), true)] {
        let (tool, handle) =
            around(&stack, [own("400 Bad Request"), reports("bad", "404 Not Found")]);
        let error = tool.clone().oneshot(call("s")).await.unwrap_err();
        assert_eq!(error.to_string(), "400 Bad Request");
        assert_eq!((is_own(&*error), find::<ToolFailed>(&*error).is_none()), (passes, passes));
        let outcome = tool.oneshot(call("s").turn("2")).await.unwrap();
        assert_eq!(outcome.error().unwrap().verdict.is_none(), passes);
        // Permanent all the same: neither was retried.
        assert_eq!(handle.calls(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn unnormalised_it_passes_after_retries_too_and_whoever_repeats_the_call_gets_its_text() {
    let (tool, handle) = around(&unnormalised(), [own("503 Service Unavailable")]);
    let error = tool.oneshot(call("s")).await.unwrap_err();
    assert_eq!((is_own(&*error), error.to_string().as_str()), (true, "503 Service Unavailable"));
    assert_eq!(handle.calls(), 4);

    let (tool, handle) = around(&unnormalised(), [own("422 Unprocessable Entity")]);
    for (turn, passes) in [("1", true), ("2", false)] {
        let call = call("s").turn(turn).idempotency_key("k");
        let error = tool.clone().oneshot(call).await.unwrap_err();
        assert_eq!(is_own(&*error), passes);
        assert_eq!(error.to_string(), "422 Unprocessable Entity");
    }
    assert_eq!(handle.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn unnormalised_the_stack_says_what_the_tool_cannot() {
    // What the model is told stands around the tool's own error.
    let (tool, _) = around(&unnormalised(), [own("Missing required parameter: path")]);
    let error = tool.oneshot(call("s")).await.unwrap_err();
    assert!(error.is::<Noted>(), "{error}");
    let mut chain = std::iter::successors(error.source(), |&link| link.source());
    assert!(chain.any(is_own), "{error:?}");

    // The last attempt did not run, but the one before may have.
    let (tool, _) = around(
        &unnormalised(),
        [own("read ECONNRESET"), fails("refused", Verdict::TRANSIENT, Ran::No)],
    );
    let error = tool.oneshot(call("s")).await.unwrap_err();
    assert_eq!(failure_info(&*error).unwrap().ran(), Ran::Unknown);
    assert!(error.to_string().ends_with(": refused: the tool did not run"), "{error}");

    // The tool was not asked.
    let stack = unnormalised();
    let (tool, handle) = around(&stack, [own("503 Service Unavailable")]);
    tool.clone().oneshot(call("s")).await.unwrap_err();
    stack.breakers().get(KeyRef::new("search")).unwrap().force_open();
    let error = tool.oneshot(call("s").turn("2")).await.unwrap_err();
    assert_eq!((failure_info(&*error).unwrap().code(), handle.calls()), (code::CIRCUIT_OPEN, 4));
}

#[derive(Clone, Debug, Default)]
struct Sees(Arc<Mutex<Vec<bool>>>);

impl Hook for Sees {
    fn after(&self, _: &ToolCall, end: Result<&ToolOutcome, &BoxError>) {
        self.0.lock().unwrap().push(is_own(&**end.unwrap_err()));
    }
}

#[tokio::test(start_paused = true)]
async fn unnormalised_hooks_get_the_tools_own_error_of_each_attempt() {
    let sees = Sees::default();
    let environment = said("TOOL_RELIABILITY_NORMALISE");
    let stack = ToolStack::builder().hook(sees.clone()).environment(environment).build().unwrap();
    let (tool, _) = around(&stack, [own("503 Service Unavailable")]);
    assert!(is_own(&*tool.oneshot(call("s")).await.unwrap_err()));
    assert_eq!(*sees.0.lock().unwrap(), [true; 4]);
}
