//! What must not wedge a breaker: hung probes, panics, observers that interfere, calls that outlive
//! it, strange names.
use crate::rig::{Heard, Rig, call, failure, is_refused, ok};
use std::{sync::Arc, time::Duration};
use tokio::time::advance;
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt};
use tr_breaker::{BreakerHandle, Builder};
use tr_core::{
    BreakerState::{Closed, HalfOpen, Open},
    CallInfo, Classification, Effect, End, Event, KeyRef, Observer, Params, RequestPolicy,
    ResponsePolicy, ToolCall, Verdict,
};
use tr_testkit::tool::{Scripted, Step};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_hung_probe_reopens_when_its_lease_ends() {
    let rig = Rig::new(Builder::by_effect().probe_lease(10 * SECOND)).opened().await;
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

impl RequestPolicy<bool> for Nervous {
    fn key<'r>(&self, _: &'r bool) -> KeyRef<'r> {
        KeyRef::new("tool")
    }

    fn effect(&self, _: &bool) -> Effect {
        Effect::ReadOnly
    }
}

impl ResponsePolicy<&'static str> for Nervous {
    fn classify<'r>(&self, end: End<'r, &'static str>) -> Classification<'r> {
        match end {
            Ok(&"judge that") => panic!("cannot"),
            Ok(_) => Classification::SUCCESS,
            Err(_) => Classification::new(Verdict::TRANSIENT, tr_core::Ran::Unknown, "x"),
        }
    }
}

#[tokio::test]
async fn a_panic_of_tool_or_classifier_counts_for_nothing_while_closed() {
    let layer = Builder::close_on_first_success().policy(Nervous).build().unwrap();
    let breaker = layer.registry().breaker(KeyRef::new("tool"));
    let panics = [Step::Ok("judge that"), Step::Panic, Step::PanicInCall];
    let tool = Scripted::script(panics.into_iter().cycle().take(30).chain([Step::Ok("fine")]));
    let service = layer.layer(tool);
    for _ in 0..30 {
        let call = tokio::spawn(service.clone().oneshot(true));
        assert!(call.await.unwrap_err().is_panic());
    }
    assert_eq!((breaker.state(), breaker.counts().calls), (Closed, 0));
    assert_eq!(service.oneshot(true).await.unwrap(), "fine");
    assert_eq!(breaker.counts().calls, 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_tool_or_classifier_does_not_wedge_a_half_open_breaker() {
    let layer = Builder::close_on_first_success().policy(Nervous).build().unwrap();
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
    let rig = Rig::new(Builder::close_on_first_success());
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

/// The layer, its services and its registry are gone before the call is.
#[tokio::test(start_paused = true)]
async fn a_call_outlives_its_breaker() {
    for end in [ok(), failure("timeout"), Step::Hang] {
        let rig = Rig::new(Builder::close_on_first_success().consecutive_failures(1));
        rig.call().await.unwrap();
        rig.then([Step::after(SECOND, end)]);
        let mut late = task::spawn(rig.service.clone().oneshot(call()));
        assert_pending!(late.poll());
        drop(rig);
        let next = Rig::new(Builder::close_on_first_success().consecutive_failures(1));
        next.call().await.unwrap();
        advance(SECOND).await;
        let _ = late.poll();
        drop(late);
        assert_eq!((next.state(), next.breaker().counts().calls), (Closed, 1));
    }
}

/// Unknown keys get a breaker each, also an empty one and a very long one.
#[tokio::test]
async fn any_name_has_a_breaker() {
    let rig = Rig::new(Builder::close_on_first_success());
    for name in ["", "\u{0}", "ünïcode", &*"x".repeat(100_000)] {
        let named = ToolCall::new(name, Params::empty_object());
        for _ in 0..5 {
            rig.then([failure("timeout")]);
            rig.service.clone().oneshot(named.clone()).await.unwrap_err();
        }
        assert!(is_refused(&rig.service.clone().oneshot(named).await));
    }
    assert_eq!(rig.layer.registry().all().len(), 4);
}

/// Panics, if it is told while a panic unwinds: that ends the process.
#[derive(Debug)]
struct Fragile;

impl Observer for Fragile {
    fn on_event(&self, _: &CallInfo<'_>, _: &Event<'_>) {
        assert!(!std::thread::panicking());
    }
}

/// The probe's lease has ended when it panics, so that giving it back reopens.
#[tokio::test(start_paused = true)]
async fn no_observer_is_told_while_a_panic_unwinds() {
    let rig = Rig::new(Builder::close_on_first_success().probe_lease(SECOND)).opened().await;
    rig.layer.registry().subscribe(Arc::new(Fragile));
    advance(30 * SECOND).await;
    rig.then([Step::after(2 * SECOND, Step::Panic)]);
    let probe = tokio::spawn(rig.service.clone().oneshot(call()));
    assert!(probe.await.unwrap_err().is_panic());
    rig.heard.take();
    assert_eq!(rig.state(), Open);
    assert_eq!(rig.heard.take(), ["flight_search flight_search: HALF_OPEN to OPEN"]);
}
