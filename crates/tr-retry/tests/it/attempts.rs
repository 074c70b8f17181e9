//! How often: attempts, overrides, agents.

use crate::common::{Heard, Tool, asking, exact, exhausted, ms, ok, permanent, search, timeout};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};
use tr_core::{
    Capability, DefaultPolicy, Effect, Params, ResponsePolicy, Retried, RetryOverride, ToolCall,
    ToolError, ToolManifest, ToolOutcome, Verdict, code, internal::CoarseInstant,
};
use tr_retry::{RetryConfig, RetryLayer, RetryStop};
use tr_testkit::tool::{Scripted, Step};

#[tokio::test(start_paused = true)]
async fn tr_05_a_transport_error_is_retried_until_it_works() {
    for failures in 0..=4 {
        let script = std::iter::repeat_n(timeout(), failures).chain([ok()]);
        let tool = Tool::script(script);
        let asked = tool.handle();
        let end = RetryLayer::default().layer(tool).oneshot(search()).await;
        assert_eq!(asked.calls(), (failures + 1).min(4));
        assert_eq!(end.is_ok(), failures < 4);
        if let Ok(outcome) = end {
            let reasons: Vec<_> =
                outcome.retried().iter().map(|one| (one.attempt, &*one.reason)).collect();
            let expected: Vec<_> = (1..).take(failures).map(|n| (n, code::TIMEOUT)).collect();
            assert_eq!(reasons, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tr_06_a_terminal_400_is_not_retried() {
    let mut error = ToolError::new("http_400", "unknown city");
    error.verdict = Some(Verdict::Permanent);
    let tool = Tool::script([Step::Ok(ToolOutcome::failure(error.clone()))]);
    let asked = tool.handle();
    let outcome = RetryLayer::default().layer(tool).oneshot(search()).await.unwrap();
    assert_eq!((outcome.error(), outcome.retried().len(), asked.calls()), (Some(&error), 0, 1));

    let tool = Tool::script([permanent()]);
    let asked = tool.handle();
    let error = RetryLayer::default().layer(tool).oneshot(search()).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), asked.calls()), ("bad_request: the tool ran", 1));
}

#[tokio::test(start_paused = true)]
async fn tr_07_attempts_are_used_up() {
    let tool = Tool::script([timeout()]).then_repeat_last();
    let asked = tool.handle();
    let start = Instant::now();
    let error = RetryLayer::default().layer(tool).oneshot(search()).await.unwrap_err();

    let error = exhausted(&error);
    assert_eq!((error.code(), error.why()), (code::RETRY_EXHAUSTED, RetryStop::Attempts));
    assert_eq!((error.attempts(), asked.calls()), (4, 4));
    assert!(start.elapsed() <= ms(1_400 + 3), "no unbounded delay");
    assert_eq!(
        error.to_string(),
        "gave up after 4 attempts (no more are allowed; earlier: timeout, timeout, timeout): timeout: the tool may have run"
    );
}

#[tokio::test(start_paused = true)]
async fn ut_05_the_calls_own_policy_wins() {
    let mut manifest = ToolManifest::new("exec");
    manifest.retry =
        Some(RetryOverride { attempts: Some(7), base: Some(ms(50)), ..RetryOverride::default() });
    let once_more = asking(RetryOverride { attempts: Some(2), ..RetryOverride::default() });
    let both = once_more.clone().manifested(Arc::new(manifest));

    for (call, starts) in [(once_more, [0, 100]), (both, [0, 50])] {
        let tool = Tool::script([timeout()]).then_repeat_last();
        let asked = tool.handle();
        let _ = exact(RetryConfig::per_request()).layer(tool).oneshot(call).await;
        assert_eq!(asked.starts(), starts.map(ms));
    }
}

#[tokio::test(start_paused = true)]
async fn ut_05_a_tool_with_its_own_retries_runs_once() {
    let mut manifest = ToolManifest::new("exec");
    manifest.capabilities = vec![Capability::OwnRetries];
    manifest.effect = Some(Effect::ReadOnly);
    let tool = Tool::script([timeout()]);
    let asked = tool.handle();
    let exec = ToolCall::new("exec", Params::empty_object()).manifested(Arc::new(manifest));
    let error = RetryLayer::per_request().layer(tool).oneshot(exec).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), asked.calls()), ("timeout: the tool may have run", 1));
}

#[tokio::test(start_paused = true)]
async fn ut_05_only_listed_codes_are_retried() {
    let only = |codes: &[&str]| RetryOverride {
        only_codes: Some(codes.iter().map(|one| Box::from(*one)).collect()),
        ..RetryOverride::default()
    };
    for (codes, calls) in [(&["timeout"][..], 2), (&["busy", "down"], 1), (&[], 2)] {
        let tool = Tool::script([timeout(), ok()]);
        let asked = tool.handle();
        let _ = RetryLayer::per_request().layer(tool).oneshot(asking(only(codes))).await;
        assert_eq!(asked.calls(), calls, "{codes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn retrying_can_be_opt_in() {
    let layer = RetryLayer::builder().config(RetryConfig::per_request()).opt_in().build().unwrap();
    for (call, calls) in [(search(), 1), (asking(RetryOverride::default()), 2)] {
        let tool = Tool::script([timeout(), ok()]);
        let asked = tool.handle();
        let end = layer.layer(tool).oneshot(call).await;
        assert_eq!((asked.calls(), end.is_ok()), (calls, calls == 2));
    }
}

/// 003's rollout of retries: opt-in per agent.
#[tokio::test(start_paused = true)]
async fn retrying_can_be_opt_in_per_agent() {
    let builder = || RetryLayer::builder().config(RetryConfig::per_request());
    let agents = ["planner", "scout"];
    let by_agent = builder().opt_in_agents(agents).build().unwrap();
    let by_either = builder().opt_in_agents(agents).opt_in().build().unwrap();
    let of = |agent: Option<&str>, asks: bool| {
        let mut call = if asks { asking(RetryOverride::default()) } else { search() };
        call.parts_mut().context.agent = agent.map(Into::into);
        call
    };
    for (agent, asks, alone, either) in [
        (Some("planner"), false, 2, 2),
        (Some("scout"), true, 2, 2),
        (Some("Planner"), false, 1, 1),
        (Some("intern"), true, 1, 2),
        (None, false, 1, 1),
        (None, true, 1, 2),
    ] {
        for (layer, calls) in [(&by_agent, alone), (&by_either, either)] {
            let tool = Tool::script([timeout(), ok()]);
            let asked = tool.handle();
            let end = layer.layer(tool).oneshot(of(agent, asks)).await;
            assert_eq!((asked.calls(), end.is_ok()), (calls, calls == 2), "{agent:?} {asks}");
        }
    }
    let heard = Heard::new();
    let layer = builder().opt_in_agents(agents).observer(heard.clone()).build().unwrap();
    let tool = Tool::script([timeout()]);
    layer.layer(tool).oneshot(of(Some("intern"), true)).await.unwrap_err();
    assert_eq!(heard.lines(), ["flight_search: 0 failed, not again: opted_out"]);

    let error = builder().opt_in_agents([""; 0]).build().unwrap_err().to_string();
    assert!(
        error.ends_with("`opt_in_agents` is [], must be one agent or more, none of them empty"),
        "{error}"
    );
    builder().opt_in_agents([""]).build().unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn no_call_asks_for_more_than_a_thousand_attempts() {
    let tool = Tool::by(|n, _| if n < 2_000 { timeout() } else { ok() }).unlogged();
    let asked = tool.handle();
    let at_once = RetryOverride {
        attempts: Some(u32::MAX),
        base: Some(Duration::ZERO),
        ..RetryOverride::default()
    };
    let error = RetryLayer::per_request().layer(tool).oneshot(asking(at_once)).await.unwrap_err();
    assert_eq!((exhausted(&error).why(), asked.calls()), (RetryStop::Attempts, 1_000));
}

#[tokio::test(start_paused = true)]
async fn precedence_is_call_manifest_effect_layer() {
    let attempts = |n| RetryOverride { attempts: Some(n), ..RetryOverride::default() };
    let mut manifest = ToolManifest::new("flight_search");
    manifest.retry = Some(attempts(6));
    let manifest = Arc::new(manifest);
    let layer = RetryLayer::builder()
        .config(RetryConfig::per_request())
        .for_effect(Effect::ReadOnly, attempts(9))
        .for_effect(Effect::ReadOnly, attempts(5))
        .build()
        .unwrap();
    for (call, calls) in [
        (crate::common::call(Effect::Idempotent), 3),
        (search(), 5),
        (search().manifested(manifest.clone()), 6),
        (asking(attempts(7)).manifested(manifest), 7),
    ] {
        let tool = Tool::script([timeout()]).then_repeat_last();
        let asked = tool.handle();
        let _ = layer.layer(tool).oneshot(call).await;
        assert_eq!(asked.calls(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn eh_7_1_one_calls_five_attempts_then_no_more() {
    let tool = Tool::script([timeout()]).then_repeat_last();
    let asked = tool.handle();
    let error = RetryLayer::fixed_cadence().layer(tool).oneshot(search()).await.unwrap_err();
    assert_eq!((exhausted(&error).attempts(), asked.calls()), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn eh_7_2_transient_is_retried_permanent_is_escalated() {
    let tool = Tool::script([timeout(), permanent(), timeout(), ok()]);
    let asked = tool.handle();
    let mut tool = RetryLayer::fixed_cadence().layer(tool);
    let error = tool.ready().await.unwrap().call(search()).await.unwrap_err();
    assert_eq!(
        (exhausted(&error).why(), exhausted(&error).code()),
        (RetryStop::Permanent, "bad_request")
    );
    assert_eq!(asked.calls(), 2);
    let outcome = tool.ready().await.unwrap().call(search()).await.unwrap();
    assert_eq!((outcome.retried().len(), asked.calls()), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn the_attempt_number_and_the_time_travel_inward() {
    let tool = Scripted::script([timeout(), timeout(), ok()]);
    let asked = tool.handle();
    let start = Instant::now();
    let call = search();
    exact(RetryConfig::per_request()).layer(tool).oneshot(call.clone()).await.unwrap();
    let requests: Vec<ToolCall> = asked.requests();
    assert_eq!(requests.iter().map(ToolCall::attempt).collect::<Vec<_>>(), [0, 1, 2]);
    let stamp = |at| CoarseInstant::at((start + ms(at)).into_std());
    let stamps = [None, Some(100), Some(300)].map(|at| at.map(stamp));
    assert_eq!(requests.iter().map(ToolCall::stamp).collect::<Vec<_>>(), stamps);
    // Params are shared by all attempts, never copied.
    assert!(requests.iter().all(|one| one.parts().params.ptr_eq(&call.parts().params)));
}

#[tokio::test(start_paused = true)]
async fn retried_lists_every_delay_reason_and_latency() {
    let slow = Step::after(ms(30), crate::common::transient("busy", tr_core::Ran::No));
    let tool = exact(RetryConfig::per_request()).layer(Tool::script([slow, timeout(), ok()]));
    let outcome = tool.oneshot(search()).await.unwrap();
    let retried = |attempt, delay, reason: &str, latency| Retried {
        attempt,
        delay: ms(delay),
        reason: reason.into(),
        latency: ms(latency),
    };
    assert_eq!(outcome.retried(), [retried(1, 100, "busy", 30), retried(2, 200, "timeout", 0)]);
    assert!(DefaultPolicy.classify(Ok(&outcome)).verdict.is_success());
}

#[test]
fn all_faults_of_a_configuration_are_told_at_once() {
    let mut config = RetryConfig::default();
    (config.attempts, config.base, config.multiplier) = (0, Duration::ZERO, f64::NAN);
    (config.jitter, config.max_elapsed) = ((0.5, 0.1), Some(Duration::ZERO));
    config.only_codes = Some(Arc::default());
    let changes = RetryOverride {
        cap: Some(ms(1)),
        base: Some(ms(2)),
        attempts: Some(2),
        ..RetryOverride::default()
    };
    let error = RetryLayer::builder()
        .config(config)
        .for_effect(Effect::Mutating, changes)
        .build()
        .unwrap_err()
        .to_string();
    for fault in [
        "`attempts` is 0, must be 1 to 1000",
        "`base` is 0ns, must be 1ms to 24h",
        "`multiplier` is NaN, must be 1 to 100",
        "`jitter` is (0.5, 0.1), must be 0 to 10, the lower share first",
        "`max_elapsed` is 0ns, must be 1ms or more",
        "`only_codes` is [], must be one code or more, none of them empty",
        "`Mutating: cap` is 1ms, must be `base` or more",
    ] {
        assert!(error.contains(fault), "{fault} is not in {error}");
    }
    assert!(!error.contains("Mutating: attempts"));
}
