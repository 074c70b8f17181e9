//! A stack by its configuration, and what of it may change while calls are under way.
use std::time::Duration;
use tool_reliability::{
    Guarded, Mode, Rollout, ToolStack,
    config::{Config, Live},
    idempotency::DerivedKeys,
    retry::RetryConfig,
};
use tower::ServiceExt;
use tr_core::{
    BreakerState, Effect, KeyRef, Params, Ran, RetryOverride, ToolCall, ToolManifest, Verdict,
    manifest::BreakerOverride,
};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails},
    tool::{Handle, Step},
};

fn live(json: &str) -> Live {
    Live::new(Config::from_json(json).unwrap(), |builder| builder).unwrap()
}

fn down(live: &Live) -> (Guarded<ScriptedTool>, Handle<ToolCall>) {
    let down = fails("http_503", Verdict::TRANSIENT, Ran::No);
    let tool = ScriptedTool::script([down]).then_repeat_last();
    let handle = tool.handle();
    (live.stack().service(tool), handle)
}

fn call(live: &Live) -> ToolCall {
    live.catalog().manifested(ToolCall::new("search", Params::empty_object()).session("s"))
}

/// Opens the breaker of a tool of that effect: after how many failures, and for how long.
async fn opens(stack: &ToolStack, name: &str, effect: Option<Effect>) -> (usize, u64) {
    let tool = ScriptedTool::script([fails("timeout", Verdict::TRANSIENT, Ran::Unknown)]);
    let tool = tool.then_repeat_last();
    let (handle, tool) = (tool.handle(), stack.service(tool));
    let breaker = || stack.breakers().get(KeyRef::new(name));
    while breaker().is_none_or(|breaker| breaker.state() == BreakerState::Closed) {
        let call = ToolCall::new(name, Params::empty_object());
        let call = effect.map_or_else(|| call.clone(), |effect| call.clone().effect(effect));
        tool.clone().oneshot(call).await.unwrap_err();
    }
    (handle.calls(), breaker().unwrap().time_left().unwrap().as_secs())
}

const EFFECTS: [Option<Effect>; 4] =
    [None, Some(Effect::ReadOnly), Some(Effect::Idempotent), Some(Effect::Mutating)];

#[tokio::test(start_paused = true)]
async fn what_a_configuration_says_of_breakers_wins_over_the_preset() {
    for (breaker, wanted) in [
        ("{}", [(5, 30), (8, 20), (5, 30), (5, 15)]),
        (r#"{"cooldown_ms": 5000}"#, [(5, 5), (8, 5), (5, 5), (5, 5)]),
        (r#"{"consecutive": 3}"#, [(3, 30), (3, 20), (3, 30), (3, 15)]),
        (
            r#"{"cooldown_ms": 5000, "mutating": {"cooldown_ms": 9000}}"#,
            [(5, 5), (8, 5), (5, 5), (5, 9)],
        ),
        (
            r#"{"read_only": {"consecutive": 2}, "idempotent": {"cooldown_ms": 7000}}"#,
            [(5, 30), (2, 20), (5, 7), (5, 15)],
        ),
    ] {
        let config = format!(
            r#"{{"breaker": {breaker}, "loops": {{"enabled": false}}, "retry": {{"attempts": 1}}}}"#
        );
        let config = Config::from_json(&config).unwrap();
        let by_file = Live::new(config, |builder| builder).unwrap();
        for (effect, wanted) in EFFECTS.into_iter().zip(wanted) {
            let found = opens(by_file.stack(), "search", effect).await;
            assert_eq!(found, wanted, "{breaker} {effect:?}");
            by_file.stack().breakers().get(KeyRef::new("search")).unwrap().reset();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_builder_says_of_breakers_wins_over_the_preset() {
    let mut rules = BreakerOverride::default();
    rules.cooldown = Some(Duration::from_secs(9));
    let mut once = RetryConfig::default();
    once.attempts = 1;
    let stack = ToolStack::builder()
        .loop_guard(|guard| guard.enabled(false))
        .retry(|retry| retry.config(once))
        .breaker(|breaker| {
            breaker.for_effect(Effect::Mutating, rules).cooldown(Duration::from_secs(5))
        })
        .build()
        .unwrap();
    for (effect, wanted) in EFFECTS.into_iter().zip([(5, 5), (8, 5), (5, 5), (5, 9)]) {
        assert_eq!(opens(&stack, "search", effect).await, wanted, "{effect:?}");
        stack.breakers().get(KeyRef::new("search")).unwrap().reset();
    }
    // A tool's manifest has the last word.
    let mut manifest = ToolManifest::new("pay");
    manifest.effect = Some(Effect::Mutating);
    manifest.breaker.cooldown = Some(Duration::from_secs(3));
    let tool = ScriptedTool::script([fails("timeout", Verdict::TRANSIENT, Ran::Unknown)]);
    let tool = stack.service(tool.then_repeat_last());
    let pay = ToolCall::new("pay", Params::empty_object()).manifested(manifest.into());
    let breaker = || stack.breakers().get(KeyRef::new("pay"));
    while breaker().is_none_or(|breaker| breaker.state() == BreakerState::Closed) {
        tool.clone().oneshot(pay.clone()).await.unwrap_err();
    }
    assert_eq!(breaker().unwrap().time_left(), Some(Duration::from_secs(3)));
}

/// 003's rollout of retries: opt-in per agent.
#[tokio::test(start_paused = true)]
async fn retrying_can_be_opt_in_per_agent() {
    for (opt_in, planner, intern, asking) in [
        ("{}", 4, 4, 4),
        (r#"{"agents": ["planner"]}"#, 4, 1, 1),
        (r#"{"calls": true}"#, 1, 1, 4),
        (r#"{"agents": ["planner"], "calls": true}"#, 4, 1, 4),
    ] {
        let live = live(&format!(r#"{{"retry_opt_in": {opt_in}}}"#));
        let attempts = async |agent: &str, asks: bool| {
            let (tool, handle) = down(&live);
            let mut call = call(&live).turn(format!("{agent} {asks}"));
            call.parts_mut().context.agent = Some(agent.into());
            call.parts_mut().retry = asks.then(RetryOverride::default);
            tool.oneshot(call).await.unwrap_err();
            live.stack().breakers().get(KeyRef::new("search")).unwrap().reset();
            handle.calls()
        };
        assert_eq!(attempts("planner", false).await, planner, "{opt_in}");
        assert_eq!(attempts("intern", false).await, intern, "{opt_in}");
        assert_eq!(attempts("intern", true).await, asking, "{opt_in}");
    }
    let error = Config::from_json(r#"{"retry_opt_in": {"agents": []}}"#).unwrap_err().to_string();
    assert!(error.contains("line 1, column 29: /retry_opt_in/agents"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_reload_changes_rollout_and_tools_and_names_the_rest() {
    let live = live(r#"{"tools": {"search": {"effect": "mutating"}}, "breaker": {"window": 19}}"#);
    let (tool, handle) = down(&live);
    // Under way with the configuration of before.
    let running = tokio::spawn(tool.clone().oneshot(call(&live)));
    tokio::task::yield_now().await;
    assert_eq!(handle.calls(), 1);

    let config = r#"{
        "rollout": {"tools": {"search": "off"}},
        "tools": {"search": {"effect": "read_only", "timeout_ms": 7}},
        "breaker": {"window": 19, "min_calls": 5},
        "loops": {"max_identical": 4},
        "records": {"where": "memory"},
        "identity": {"acme": {"call": "acme/call"}},
        "upstream": {"status": {"503": "not_run"}}
    }"#;
    let reloaded = live.reload(Config::from_json(config).unwrap()).unwrap();
    assert_eq!(reloaded.needs_restart, ["breaker", "loops", "records", "identity", "upstream"]);
    assert_eq!(live.stack().kill_switch().rollout(), Rollout::default().tool("search", Mode::Off));
    let next = call(&live);
    assert_eq!(next.parts().effect, Effect::ReadOnly);
    assert_eq!(next.manifest().unwrap().timeout, Some(Duration::from_millis(7)));
    tool.clone().oneshot(next).await.unwrap_err();
    assert_eq!(handle.calls(), 2, "off: one attempt");
    running.await.unwrap().unwrap_err();
    assert_eq!(handle.calls(), 5, "what was under way had its four");

    // Back to nothing said.
    live.reload(Config::default()).unwrap();
    assert_eq!(live.stack().kill_switch().rollout(), Rollout::default());
    assert!(live.catalog().is_empty());
}

#[test]
fn a_configuration_that_cannot_be_built_changes_nothing() {
    let live = live(r#"{"rollout": {"mode": "shadow"}}"#);
    let mut bad = Config::default();
    bad.breaker.cooldown = Some(Duration::MAX);
    bad.retry.base = Some(Duration::ZERO);
    let error = live.reload(bad).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 2, "{error}");
    assert_eq!(live.stack().kill_switch().rollout(), Rollout::new(Mode::Shadow));
}

#[test]
fn the_builder_has_the_last_word() {
    let config = Config::from_json(r#"{"idempotency": {"derived_keys": "session"}}"#).unwrap();
    let changed = Live::new(config, |builder| {
        builder.idempotency(|records| records.derived_keys(DerivedKeys::Off).capacity(0))
    });
    assert!(changed.unwrap_err().to_string().contains("capacity"));
}

#[tokio::test(start_paused = true)]
async fn what_it_declares_of_tools_holds_for_calls_that_bring_no_manifest() {
    let live = live(r#"{"tools": {"search": {"effect": "read_only", "timeout_ms": 500}}}"#);
    let bare = |tool: &str| ToolCall::new(tool, Params::empty_object()).session("s");
    let hangs = ScriptedTool::script([Step::Hang, answers("found")]);
    let handle = hangs.handle();
    let start = tokio::time::Instant::now();
    live.stack().service(hangs).oneshot(bare("search")).await.unwrap();
    assert_eq!(handle.calls(), 2, "read-only, so that it is repeated");
    assert!(start.elapsed() < Duration::from_secs(2), "after its own timeout");

    // Another tool is mutating.
    let hangs = ScriptedTool::script([Step::Hang, answers("paid")]);
    let handle = hangs.handle();
    live.stack().service(hangs).oneshot(bare("pay")).await.unwrap_err();
    assert_eq!(handle.calls(), 1);

    // A call's own manifest is not replaced, and a new declaration holds from the next call on.
    let own = bare("search").manifested(ToolManifest::new("search").into());
    let hangs = ScriptedTool::script([Step::Hang, answers("found")]);
    let handle = hangs.handle();
    live.stack().service(hangs).oneshot(own).await.unwrap_err();
    assert_eq!(handle.calls(), 1);
    live.reload(Config::from_json(r#"{"tools": {"pay": {"effect": "read_only"}}}"#).unwrap())
        .unwrap();
    let hangs = ScriptedTool::script([Step::Hang, answers("seen")]);
    let handle = hangs.handle();
    live.stack().service(hangs).oneshot(bare("pay")).await.unwrap();
    assert_eq!(handle.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_effect_for_undeclared_tools_loosens_no_call_by_itself() {
    let live = live(r#"{"undeclared_effect": "idempotent"}"#);
    let hangs = ScriptedTool::script([Step::Hang, answers("paid")]);
    let handle = hangs.handle();
    let pay = ToolCall::new("pay", Params::empty_object()).session("s");
    live.stack().service(hangs).oneshot(pay).await.unwrap_err();
    assert_eq!(handle.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_configuration_says_of_retries_leaves_the_rest_to_the_program() {
    for (json, attempts) in [
        ("{}", 7),
        (r#"{"retry": {"base_ms": 5}}"#, 7),
        (r#"{"retry": {"attempts": 2}}"#, 2),
        (r#"{"preset": "error_handling"}"#, 5),
    ] {
        let config = Config::from_json(json).unwrap();
        let program = ToolStack::builder().retry(|retry| retry.attempts(7));
        let stack = program.config(&config).build().unwrap();
        let down = fails("http_503", Verdict::TRANSIENT, Ran::No);
        let tool = ScriptedTool::script([down]).then_repeat_last();
        let (handle, tool) = (tool.handle(), stack.service(tool));
        let call = ToolCall::new("search", Params::empty_object()).effect(Effect::ReadOnly);
        tool.oneshot(call).await.unwrap_err();
        assert_eq!(handle.calls(), attempts, "{json}");
    }
}
