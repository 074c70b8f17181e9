//! Where other breakers fail: one test for each failure, and a few of our own kind.
use crate::rig::{Heard, Rig, call, failure, is_refused, ok, permanent};
use std::{sync::Arc, time::Duration};
use tokio::time::{advance, sleep, timeout};
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt};
use tr_breaker::{BreakerHandle, BreakerLayer, Builder};
use tr_core::{
    BreakerState::{Closed, HalfOpen, Open},
    CallInfo, Classification, Classify, Effect, EffectOf, End, Event, KeyOf, KeyRef, Observer,
    Progress, ToolCall, ToolOutcome, Verdict,
};
use tr_testkit::tool::{Scripted, Step};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_window_opens_soon_after_100_000_successes() {
    let rig = Rig::new(BreakerLayer::builder().consecutive_failures(None));
    for _ in 0..100_000 {
        rig.call().await.unwrap();
    }
    let mut failures = 0;
    while rig.state() == Closed {
        rig.calls([failure("timeout")]).await;
        failures += 1;
    }
    assert_eq!(failures, 10, "half of the last 20");
}

#[tokio::test(start_paused = true)]
async fn a_call_admitted_before_the_trip_neither_closes_nor_reopens() {
    for late in [ok(), failure("timeout")] {
        let rig = Rig::new(Builder::error_handling());
        rig.then([Step::after(40 * SECOND, late)]);
        let mut service = rig.service.clone();
        let mut slow = task::spawn(service.ready().await.unwrap().call(call()));
        assert_pending!(slow.poll());
        let rig = rig.opened().await;
        advance(30 * SECOND).await;
        assert_eq!(rig.state(), HalfOpen);
        let _ = slow.await;
        assert_eq!(rig.state(), HalfOpen);
        assert_eq!(rig.heard.take(), ["flight_search flight_search: OPEN to HALF_OPEN"]);
    }
}

#[tokio::test(start_paused = true)]
async fn probes_killed_by_an_outer_timeout_come_back() {
    let rig = Rig::new(Builder::tool_reliability()).opened().await;
    advance(30 * SECOND).await;
    for _ in 0..100 {
        rig.then([Step::Hang]);
        timeout(Duration::from_millis(100), rig.call()).await.unwrap_err();
        assert_eq!((rig.state(), rig.breaker().counts().probes), (HalfOpen, 0));
    }
    rig.calls([ok(), ok()]).await;
    assert_eq!(rig.state(), Closed);
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_are_no_failures() {
    let rig = Rig::new(Builder::error_handling());
    rig.then((0..20).map(|_| Step::Hang));
    for _ in 0..20 {
        timeout(SECOND, rig.call()).await.unwrap_err();
    }
    let counts = rig.breaker().counts();
    assert_eq!((rig.state(), counts.calls, counts.consecutive_failures), (Closed, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn errors_that_do_not_count_eat_no_probe() {
    let builder = Builder::error_handling().count_rate_limits(false);
    let rig = Rig::new(builder).opened().await;
    advance(30 * SECOND).await;
    for _ in 0..10 {
        rig.calls([permanent(), failure("rate_limited")]).await;
        assert_eq!((rig.state(), rig.breaker().counts().probes), (HalfOpen, 0));
    }
    rig.calls([ok()]).await;
    assert_eq!(rig.state(), Closed);
}

#[tokio::test(start_paused = true)]
async fn timeouts_inside_count() {
    let layer = Builder::error_handling().build().unwrap();
    let hangs = Scripted::<ToolCall, ToolOutcome>::script([Step::Hang]).then_repeat_last();
    let service = layer.layer(tower::timeout::Timeout::new(hangs, SECOND));
    for _ in 0..5 {
        service.clone().oneshot(call()).await.unwrap_err();
    }
    assert_eq!(layer.registry().breaker(call().parts().tool.key()).state(), Open);
}

#[tokio::test(start_paused = true)]
async fn two_permits_and_probes_farther_apart_than_the_window_do_not_wedge() {
    let rolling = Duration::from_millis(300);
    let builder = BreakerLayer::builder().rolling(rolling).max_probes(2).successes_to_close(2);
    let rig = Rig::new(builder).opened().await;
    advance(30 * SECOND).await;
    rig.call().await.unwrap();
    sleep(Duration::from_millis(500)).await;
    rig.call().await.unwrap();
    assert_eq!(rig.state(), Closed);
}

#[tokio::test(start_paused = true)]
async fn of_100_concurrent_probes_one_is_admitted() {
    let rig = Rig::new(Builder::tool_reliability()).opened().await;
    advance(30 * SECOND).await;
    let before = rig.asked.calls();
    rig.then((0..100).map(|_| Step::after(SECOND, ok())));
    let mut crowd = Vec::new();
    for _ in 0..100 {
        let mut service = rig.service.clone();
        crowd.push(tokio::spawn(async move { service.ready().await?.call(call()).await }));
    }
    let mut refused = 0;
    for one in crowd {
        refused += usize::from(is_refused(&one.await.unwrap()));
    }
    assert_eq!((rig.asked.calls() - before, refused), (1, 99));
}

#[tokio::test(start_paused = true)]
async fn one_layer_applied_twice_is_one_circuit() {
    let rig = Rig::new(Builder::tool_reliability()).opened().await;
    let again = rig.layer.clone().layer(Scripted::script([ok()]).then_repeat_last());
    assert!(is_refused(&again.oneshot(call()).await));
}

#[tokio::test(start_paused = true)]
async fn a_hung_probe_reopens_when_its_lease_ends() {
    let rig = Rig::new(Builder::tool_reliability().probe_lease(10 * SECOND)).opened().await;
    advance(30 * SECOND).await;
    rig.then([Step::Hang]);
    let mut service = rig.service.clone();
    let mut hung = task::spawn(service.ready().await.unwrap().call(call()));
    assert_pending!(hung.poll());
    advance(10 * SECOND).await;
    assert_eq!((rig.state(), rig.breaker().time_left()), (Open, Some(30 * SECOND)));
    advance(30 * SECOND).await;
    let before = rig.asked.calls();
    rig.then([Step::Hang]);
    let mut service = rig.service.clone();
    let mut second = task::spawn(service.ready().await.unwrap().call(call()));
    assert_pending!(second.poll());
    drop(hung);
    assert!(is_refused(&rig.call().await), "the late return frees no place of another's");
    assert_eq!(rig.asked.calls(), before + 1);
}

/// Panics when it has to judge, if told so.
#[derive(Clone, Copy, Debug)]
struct Nervous;

impl KeyOf<bool> for Nervous {
    fn key_of<'r>(&self, _: &'r bool) -> KeyRef<'r> {
        KeyRef::new("tool")
    }
}

impl EffectOf<bool> for Nervous {
    fn effect_of(&self, _: &bool) -> Effect {
        Effect::ReadOnly
    }
}

impl Progress<bool> for Nervous {}

impl Classify<&'static str> for Nervous {
    fn classify<'r>(&self, end: End<'r, &'static str>) -> Classification<'r> {
        match end {
            Ok(&"judge that") => panic!("cannot"),
            Ok(_) => Classification::SUCCESS,
            Err(_) => Classification::new(Verdict::TRANSIENT, tr_core::Ran::Unknown, "x"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_tool_or_classifier_does_not_wedge_a_half_open_breaker() {
    let layer = Builder::error_handling().answers(Nervous).build().unwrap();
    let breaker = layer.registry().breaker(KeyRef::new("tool"));
    let fails = (0..8).map(|_| Step::err("down"));
    let panics = [Step::Ok("judge that"), Step::Panic, Step::PanicInCall];
    let tool = Scripted::script(fails.take(5).chain(panics).chain([Step::Ok("fine")]));
    let service = layer.layer(tool);
    for _ in 0..5 {
        service.clone().oneshot(true).await.unwrap_err();
    }
    advance(30 * SECOND).await;
    for _ in 0..3 {
        let call = tokio::spawn(service.clone().oneshot(true));
        assert!(call.await.unwrap_err().is_panic());
        assert_eq!((breaker.state(), breaker.counts().probes), (HalfOpen, 0));
    }
    assert_eq!(service.oneshot(true).await.unwrap(), "fine");
    assert_eq!(breaker.state(), Closed);
}

/// Acts on the breaker while it is told of it.
#[derive(Debug)]
struct Meddler(BreakerHandle);

impl Observer for Meddler {
    fn on_event(&self, _: &CallInfo<'_>, event: &Event<'_>) {
        if let Event::Breaker { to: Open, .. } = event {
            self.0.reset();
            panic!("and fails at that");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_may_act_and_may_panic_and_the_others_hear_all_in_order() {
    let rig = Rig::new(Builder::error_handling());
    rig.layer.registry().subscribe(Arc::new(Meddler(rig.breaker())));
    let after = Arc::new(Heard::default());
    let service = rig.service.clone();
    rig.then((0..5).map(|_| failure("timeout")));
    let burst = tokio::spawn(async move {
        for _ in 0..5 {
            let _ = service.clone().oneshot(call()).await;
        }
    });
    assert!(burst.await.unwrap_err().is_panic());
    rig.layer.registry().subscribe(after.clone());
    rig.breaker().force_open();
    let heard = ["CLOSED to OPEN", "OPEN to CLOSED", "CLOSED to FORCED_OPEN"]
        .map(|step| format!("flight_search flight_search: {step}"));
    assert_eq!(rig.heard.take(), heard);
    assert_eq!(after.take(), heard[1..], "those that were still to be told");
}
