//! The acceptance cases, as callers see them.
use crate::rig::{Rig, call, failure, is_refused, ok, permanent, refusal};
use std::time::Duration;
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Service, ServiceExt};
use tr_breaker::{BreakerLayer, Builder, Mode};
use tr_core::{
    BreakerState::{Closed, ForcedOpen, HalfOpen, Open},
    Effect, Ran, Verdict, failure_info,
    internal::CoarseInstant,
    root_cause,
};
use tr_testkit::tool::Step;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn tr_08_consecutive_failures_open() {
    let rig = Rig::new(Builder::by_effect());
    let mutation = call().effect(Effect::Mutating);
    for failures in 1..=5 {
        assert_eq!(rig.state(), Closed, "after {} failures", failures - 1);
        rig.then([failure("http_503")]);
        rig.service.clone().oneshot(mutation.clone()).await.unwrap_err();
    }
    assert_eq!(rig.state(), Open);

    // The tool has recovered, and nobody asks it: refused at once, without a timer.
    let start = Instant::now();
    let mut service = rig.service.clone();
    let refused = assert_ready!(task::spawn(service.ready().await.unwrap().call(mutation)).poll());
    assert_eq!((rig.asked.calls(), start.elapsed()), (5, Duration::ZERO));

    let open = refusal(&refused);
    assert_eq!((open.breaker(), open.state()), ("flight_search", Open));
    assert_eq!(open.retry_after(), Some(15 * SECOND));
    assert_eq!(open.last_failure(), Some("http_503: the tool may have run"));
    assert_eq!(open.to_string(), "circuit breaker of flight_search is OPEN for another 15s");
    let error = refused.as_ref().unwrap_err();
    let facts = failure_info(&**error).unwrap();
    assert_eq!((facts.code(), facts.ran()), ("circuit_open", Ran::No));
    assert_eq!(facts.verdict(), Verdict::Transient { retry_after: Some(15 * SECOND) });
    assert!(facts.is_exhausted(), "retry must not go on");
    assert_eq!(root_cause(&**error).to_string(), "http_503: the tool may have run");
}

#[tokio::test(start_paused = true)]
async fn tr_09_recovery_after_cooldown() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
    advance(30 * SECOND).await;
    for closes in [false, true] {
        assert_eq!(rig.state(), HalfOpen);
        rig.call().await.unwrap();
        assert_eq!(rig.state() == Closed, closes);
    }
    rig.call().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tr_10_probe_failure_reopens() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
    advance(45 * SECOND).await;
    rig.calls([failure("timeout")]).await;
    assert_eq!((rig.state(), rig.breaker().time_left()), (Open, Some(30 * SECOND)));
    advance(29 * SECOND).await;
    assert!(is_refused(&rig.call().await));
    advance(SECOND).await;
    assert_eq!(rig.state(), HalfOpen);
}

#[tokio::test(start_paused = true)]
async fn tr_13_an_event_for_every_transition() {
    let rig = Rig::new(Builder::by_effect());
    let (breaker, heard) = (rig.breaker(), rig.heard.clone());
    rig.calls([(); 5].map(|()| failure("timeout"))).await;
    assert_eq!(heard.take(), ["flight_search flight_search: CLOSED to OPEN"]);
    rig.call().await.unwrap_err();
    assert_eq!(heard.take(), ["flight_search flight_search: OPEN refuses"]);

    // The clock's own step: told once, by whoever notices it.
    advance(30 * SECOND).await;
    assert_eq!([breaker.state(), breaker.state()], [HalfOpen, HalfOpen]);
    assert_eq!(heard.take(), ["flight_search flight_search: OPEN to HALF_OPEN"]);
    rig.calls([failure("timeout")]).await;
    assert_eq!(heard.take(), ["flight_search flight_search: HALF_OPEN to OPEN"]);
    advance(30 * SECOND).await;
    rig.calls([ok(), ok()]).await;
    let recovered = ["OPEN to HALF_OPEN", "HALF_OPEN to CLOSED"];
    assert_eq!(heard.take(), recovered.map(|step| format!("flight_search flight_search: {step}")));

    breaker.force_open();
    breaker.force_open();
    rig.call().await.unwrap_err();
    breaker.reset();
    breaker.reset();
    let forced = ["CLOSED to FORCED_OPEN", "FORCED_OPEN refuses", "FORCED_OPEN to CLOSED"];
    assert_eq!(heard.take(), forced.map(|step| format!("flight_search flight_search: {step}")));
}

#[tokio::test(start_paused = true)]
async fn eh_3_1_opens_after_five_failures() {
    let rig = Rig::new(Builder::close_on_first_success());
    for _ in 0..4 {
        rig.calls([failure("timeout")]).await;
        assert_eq!(rig.state(), Closed);
    }
    rig.calls([failure("timeout")]).await;
    assert_eq!(rig.state(), Open);
    assert!(is_refused(&rig.call().await));
    assert_eq!(rig.asked.calls(), 5);
}

#[tokio::test(start_paused = true)]
async fn eh_3_2_half_opens_after_30_s() {
    for probe_succeeds in [true, false] {
        let rig = Rig::new(Builder::close_on_first_success()).opened().await;
        assert!(is_refused(&rig.call().await), "at 0 s");
        advance(15 * SECOND).await;
        assert!(is_refused(&rig.call().await), "at 15 s");
        assert_eq!(rig.state(), Open);
        advance(15 * SECOND).await;
        assert_eq!(rig.state(), HalfOpen);

        rig.then([Step::after(5 * SECOND, if probe_succeeds { ok() } else { failure("x") })]);
        let (asked, mut service) = (rig.asked.calls(), rig.service.clone());
        let mut probe = task::spawn(service.ready().await.unwrap().call(call()));
        assert_pending!(probe.poll());
        for _ in 0..3 {
            let refused = rig.call().await;
            assert_eq!(
                (refusal(&refused).state(), refusal(&refused).retry_after()),
                (HalfOpen, None)
            );
        }
        assert_eq!(rig.asked.calls(), asked + 1, "exactly one");

        advance(5 * SECOND).await;
        assert_eq!(assert_ready!(probe.poll()).is_ok(), probe_succeeds);
        if probe_succeeds {
            assert_eq!(rig.state(), Closed);
        } else {
            assert_eq!((rig.state(), rig.breaker().time_left()), (Open, Some(30 * SECOND)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn eh_3_3_closes_after_a_success_in_half_open() {
    let rig = Rig::new(Builder::close_on_first_success()).opened().await;
    advance(30 * SECOND).await;
    rig.call().await.unwrap();
    assert_eq!((rig.state(), rig.breaker().counts().consecutive_failures), (Closed, 0));
    rig.calls([(); 4].map(|()| failure("timeout"))).await;
    assert_eq!(rig.state(), Closed);
    rig.call().await.unwrap();
}

#[tokio::test]
async fn eh_3_4_permanent_errors_do_not_count() {
    let rig = Rig::new(Builder::close_on_first_success());
    rig.calls([(); 5].map(|()| permanent())).await;
    assert_eq!((rig.state(), rig.breaker().counts().consecutive_failures), (Closed, 0));
    assert_eq!(rig.asked.calls(), 5);
}

#[tokio::test]
async fn eh_3_5_transient_errors_count() {
    let rig = Rig::new(Builder::close_on_first_success());
    let errors = ["Connection timeout after 30s", "Rate limit exceeded (429)", "Connection reset"];
    rig.calls(errors.into_iter().cycle().take(5).map(Step::err)).await;
    assert_eq!((rig.state(), rig.breaker().counts().consecutive_failures), (Open, 5));
}

#[tokio::test]
async fn eh_7_2_mixed_transient_and_permanent() {
    let rig = Rig::new(Builder::close_on_first_success());
    rig.calls([failure("timeout"), permanent(), failure("rate_limited")]).await;
    assert_eq!(rig.breaker().counts().consecutive_failures, 1);
}

#[tokio::test]
async fn rate_limits_count_by_a_knob() {
    for (counts, state) in [(true, Open), (false, Closed)] {
        let rig = Rig::new(Builder::close_on_first_success().count_rate_limits(counts));
        rig.calls([(); 5].map(|()| failure("rate_limited"))).await;
        assert_eq!(rig.state(), state);
        let failures = if counts { 5 } else { 0 };
        assert_eq!(rig.breaker().counts().consecutive_failures, failures);
    }
}

/// A poll may answer so for a long time.
#[tokio::test]
async fn what_is_not_ready_yet_opens_nothing() {
    let rig = Rig::new(Builder::close_on_first_success());
    rig.calls([(); 20].map(|()| failure("not_ready"))).await;
    assert_eq!((rig.state(), rig.asked.calls()), (Closed, 20));
}

#[tokio::test]
async fn presets_judge_by_the_declared_effect() {
    for (effect, failures) in [
        (None, 5),
        (Some(Effect::Mutating), 5),
        (Some(Effect::Idempotent), 5),
        (Some(Effect::ReadOnly), 8),
    ] {
        let rig = Rig::new(Builder::by_effect());
        let call = effect.map_or_else(call, |effect| call().effect(effect));
        while rig.state() == Closed {
            rig.then([failure("timeout")]);
            rig.service.clone().oneshot(call.clone()).await.unwrap_err();
        }
        assert_eq!(rig.asked.calls(), failures, "{effect:?}");
    }
}

#[tokio::test]
async fn shadow_lets_pass_what_it_would_refuse() {
    let rig = Rig::new(Builder::close_on_first_success()).opened().await;
    rig.breaker().set_mode(Mode::Shadow);
    rig.call().await.unwrap();
    assert_eq!(rig.heard.take(), ["flight_search flight_search: OPEN would refuse"]);
    assert_eq!(rig.state(), Open, "what it let pass is not counted");
    rig.breaker().set_mode(Mode::Enforce);
    assert!(is_refused(&rig.call().await));
}

#[tokio::test]
async fn disabled_by_handle_and_back() {
    let rig = Rig::new(Builder::close_on_first_success()).opened().await;
    rig.breaker().set_mode(Mode::Disabled);
    rig.calls([(); 9].map(|()| failure("timeout"))).await;
    assert_eq!(rig.asked.calls(), 5 + 9);
    assert_eq!((rig.state(), rig.breaker().counts().failures), (Closed, 0));
    rig.breaker().reset();
    rig.calls([(); 9].map(|()| failure("timeout"))).await;
    assert_eq!((rig.state(), rig.asked.calls()), (Open, 5 + 9 + 5));
}

#[tokio::test]
async fn forced_open_by_settings_until_reset() {
    let rig = Rig::new(BreakerLayer::builder().forced_open(true));
    let refused = rig.call().await;
    assert_eq!(refusal(&refused).state(), ForcedOpen);
    assert_eq!((refusal(&refused).retry_after(), refusal(&refused).last_failure()), (None, None));
    let text = "circuit breaker of flight_search is FORCED_OPEN until it is reset";
    assert_eq!(refusal(&refused).to_string(), text);
    rig.breaker().reset();
    rig.call().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn slow_calls_count_where_the_rule_is_set() {
    let rule = BreakerLayer::builder().slow_calls(2 * SECOND, 0.5);
    let rig = Rig::new(rule);
    let slow = || Step::after(3 * SECOND, ok());
    rig.calls([(); 9].map(|()| slow())).await;
    assert_eq!((rig.state(), rig.breaker().counts().slow_calls), (Closed, 9));
    rig.calls([ok()]).await;
    assert_eq!(rig.state(), Open);
}

#[tokio::test(start_paused = true)]
async fn a_ramp_after_closing_lets_pass_some_calls_at_first() {
    let rig = Rig::new(Builder::close_on_first_success().ramp(10 * SECOND)).opened().await;
    advance(30 * SECOND).await;
    rig.call().await.unwrap();
    let refused = rig.call().await;
    assert_eq!((refusal(&refused).state(), refusal(&refused).retry_after()), (Closed, None));
    let text =
        "circuit breaker of flight_search is CLOSED and admits only some calls while it ramps up";
    assert_eq!(refusal(&refused).to_string(), text);
    advance(10 * SECOND).await;
    for _ in 0..20 {
        rig.call().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_stamped_before_it_opened_is_refused_and_shortens_no_cooldown() {
    let rig = Rig::new(Builder::close_on_first_success());
    let mut old = call();
    old.set_stamp(Some(CoarseInstant::at(Instant::now().into_std())));
    advance(20 * SECOND).await;
    let rig = rig.opened().await;
    let mut fresh = call();
    fresh.set_stamp(Some(CoarseInstant::at(Instant::now().into_std())));
    for call in [old, fresh] {
        let refused = rig.service.clone().oneshot(call).await;
        assert_eq!(refusal(&refused).retry_after(), Some(30 * SECOND));
    }
    assert_eq!(rig.breaker().time_left(), Some(30 * SECOND));
}
