//! The switches that an operator sets in the environment.
use tool_reliability::{
    Environment, Guarded, Mode, Rollout, Share, Stage, ToolStack, adapter::ToolFailed, environment,
    idempotency::DerivedKeys,
};
use tower::ServiceExt;
use tr_core::{
    BreakerState, Effect, KeyRef, Params, Ran, ToolCall, ToolOutcome, Verdict, code, facts, find,
};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails, reports},
    tool::{Handle, Step},
};

fn around(
    stack: &ToolStack,
    script: impl IntoIterator<Item = Step<ToolOutcome>>,
) -> (Guarded<ScriptedTool>, Handle<ToolCall>) {
    let tool = ScriptedTool::script(script).then_repeat_last();
    let handle = tool.handle();
    (stack.service(tool), handle)
}

fn call(session: &str) -> ToolCall {
    ToolCall::new("search", Params::empty_object()).effect(Effect::Idempotent).session(session)
}

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
        assert_ne!(facts(&*error).unwrap().code(), code::CIRCUIT_OPEN);
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

#[derive(Debug)]
struct Own;

impl std::fmt::Display for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("400 Bad Request")
    }
}

impl std::error::Error for Own {}

#[tokio::test(start_paused = true)]
async fn unnormalised_a_tools_own_failure_passes_as_it_is() {
    for (environment, is_own) in
        [(Environment::default(), false), (said("TOOL_RELIABILITY_NORMALISE"), true)]
    {
        let stack = ToolStack::builder().environment(environment).build().unwrap();
        let (tool, handle) = around(&stack, [Step::err(Own), reports("bad", "404 Not Found")]);
        let error = tool.clone().oneshot(call("s")).await.unwrap_err();
        assert_eq!(error.to_string(), "400 Bad Request");
        assert_eq!(find::<ToolFailed>(&*error).is_none(), is_own, "{error:?}");
        let outcome = tool.oneshot(call("s").turn("2")).await.unwrap();
        assert_eq!(outcome.error().unwrap().verdict.is_none(), is_own);
        // Permanent all the same: neither was retried.
        assert_eq!(handle.calls(), 2);
    }
}
