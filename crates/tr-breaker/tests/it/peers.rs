//! Where other breakers fail: a test for each failure, with the peer and the number of its issue in
//! its name.
use crate::rig::{Rig, call, failure, is_refused, ok, permanent};
use std::time::Duration;
use tokio::time::{advance, sleep, timeout};
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt};
use tr_breaker::{BreakerLayer, Builder};
use tr_core::{
    BreakerState::{Closed, HalfOpen, Open},
    FailureInfo, Ran, ToolCall, ToolOutcome, Verdict,
};
use tr_testkit::tool::{Scripted, Step};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn peer_tr_window_that_never_slides_after_100_000_successes() {
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
async fn peer_tr_and_resilience4j_stale_failure_reopens_and_stale_success_closes() {
    for late in [ok(), failure("timeout")] {
        let rig = Rig::new(Builder::close_on_first_success());
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
async fn peer_resilience4j_903_935_1568_half_open_wedged_by_probes_that_vanish() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
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
async fn peer_resilience4j_682_cancelled_call_counted_as_failure() {
    let rig = Rig::new(Builder::close_on_first_success());
    rig.then((0..20).map(|_| Step::Hang));
    for _ in 0..20 {
        timeout(SECOND, rig.call()).await.unwrap_err();
    }
    let counts = rig.breaker().counts();
    assert_eq!((rig.state(), counts.calls, counts.consecutive_failures), (Closed, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn peer_resilience4j_545_ignored_error_eats_a_permit() {
    let builder = Builder::close_on_first_success().count_rate_limits(false);
    let rig = Rig::new(builder).opened().await;
    advance(30 * SECOND).await;
    for _ in 0..10 {
        let ignored = FailureInfo::new("tls_untrusted", Ran::Unknown, Verdict::Permanent);
        rig.calls([Step::err(ignored), failure("rate_limited")]).await;
        assert_eq!((rig.state(), rig.breaker().counts().probes), (HalfOpen, 0));
    }
    rig.calls([ok()]).await;
    assert_eq!(rig.state(), Closed);
}

#[tokio::test(start_paused = true)]
async fn peer_tr_calls_killed_by_a_timeout_are_not_counted() {
    let layer = Builder::close_on_first_success().build().unwrap();
    let hangs = Scripted::<ToolCall, ToolOutcome>::script([Step::Hang]).then_repeat_last();
    let service = layer.layer(tower::timeout::Timeout::new(hangs, SECOND));
    for _ in 0..5 {
        service.clone().oneshot(call()).await.unwrap_err();
    }
    assert_eq!(layer.registry().breaker(call().parts().tool.key()).state(), Open);
}

#[tokio::test(start_paused = true)]
async fn peer_tr_time_window_wedges_half_open_with_two_permits() {
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
async fn peer_failsafe_recloser_and_resilience4j_1090_too_many_probes() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
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
async fn peer_tr_one_layer_applied_twice_makes_two_circuits() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
    let again = rig.layer.clone().layer(Scripted::script([ok()]).then_repeat_last());
    assert!(is_refused(&again.oneshot(call()).await));
}

/// In flight when it opens, calls fail long after: that neither prolongs the break nor ends it.
#[tokio::test(start_paused = true)]
async fn peer_polly_216_219_overhanging_calls_prolong_the_break() {
    let rig = Rig::new(Builder::close_on_first_success());
    rig.then((1..=20).map(|second| Step::after(second * SECOND, failure("timeout"))));
    let overhanging: Vec<_> =
        (0..20).map(|_| tokio::spawn(rig.service.clone().oneshot(call()))).collect();
    tokio::task::yield_now().await;
    let rig = rig.opened().await;
    for call in overhanging {
        call.await.unwrap().unwrap_err();
    }
    assert_eq!((rig.state(), rig.breaker().time_left()), (Open, Some(10 * SECOND)));
    assert_eq!(rig.heard.take(), [""; 0], "and nobody hears of them");
}

#[test]
fn peer_polly_1866_2163_long_times_overflow() {
    let year = 365 * 24 * 60 * 60 * SECOND;
    let longest = || {
        let longest = BreakerLayer::builder().cooldown(year).cooldown_jitter(1.0).rolling(year);
        longest.probe_lease(year).ramp(year).slow_calls(year, 1.0)
    };
    assert_eq!(longest().cooldown(Duration::MAX).build().unwrap_err().faults().count(), 1);
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(async {
            for _ in 0..3 {
                let rig = Rig::new(longest()).opened().await;
                let left = rig.breaker().time_left().unwrap();
                assert!((year..=2 * year).contains(&left));
                advance(left).await;
                assert_eq!(rig.state(), HalfOpen);
                rig.calls([ok(), ok()]).await;
                assert_eq!(rig.state(), Closed);
            }
        });
}

#[tokio::test(start_paused = true)]
async fn peer_tr_and_resilience4j_2234_paused_time_cannot_drive_it() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
    let before = rig.asked.calls();
    advance(30 * SECOND - Duration::from_nanos(1)).await;
    assert_eq!(rig.breaker().time_left(), Some(Duration::from_nanos(1)));
    assert!(is_refused(&rig.call().await));
    advance(Duration::from_nanos(1)).await;
    rig.call().await.unwrap();
    assert_eq!(rig.asked.calls(), before + 1);
}

/// Two layers are two sets of circuits, also with the same settings.
#[tokio::test]
async fn peer_tr_two_layers_share_nothing() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
    let other = Rig::new(Builder::by_effect());
    other.call().await.unwrap();
    assert_eq!((rig.state(), other.state()), (Open, Closed));
}

/// github.com/App-vNext/Polly/issues/1979: after an outage, a store answers 404 for what is not there.
#[tokio::test(start_paused = true)]
async fn peer_polly_1979_a_healthy_service_that_answers_404_stays_half_open() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
    advance(30 * SECOND).await;
    rig.calls([permanent(), permanent()]).await;
    assert_eq!(rig.state(), Closed);
}
