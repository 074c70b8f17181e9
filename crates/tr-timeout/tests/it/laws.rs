//! The laws of `Service`, for both layers.
use std::time::Duration;
use tower::Layer;
use tr_core::{KeyRef, RequestPolicy};
use tr_testkit::{
    drops,
    laws::Laws,
    tool::{Scripted, Step},
};
use tr_timeout::{AttemptTimeoutLayer, DeadlineLayer};

/// Requests are numbers, which have a minute.
#[derive(Clone, Copy)]
struct Numbers;

impl RequestPolicy<u64> for Numbers {
    fn key<'r>(&self, _: &'r u64) -> KeyRef<'r> {
        KeyRef::new("square")
    }

    fn deadline(&self, _: &u64) -> Option<std::time::Instant> {
        Some(tokio::time::Instant::now().into_std() + Duration::from_secs(60))
    }
}

fn attempt() -> AttemptTimeoutLayer<Numbers> {
    AttemptTimeoutLayer::builder().policy(Numbers).build().unwrap()
}

fn deadline() -> DeadlineLayer<Numbers> {
    DeadlineLayer::builder().policy(Numbers).build().unwrap()
}

#[test]
fn the_attempt_timeout_keeps_the_laws() {
    Laws::new(|n| n, |n: &u64| n * n).check(|tool| attempt().layer(tool));
}

#[test]
fn the_deadline_keeps_the_laws() {
    Laws::new(|n| n, |n: &u64| n * n).check(|tool| deadline().layer(tool));
}

#[test]
fn both_together_keep_the_laws() {
    Laws::new(|n| n, |n: &u64| n * n).check(|tool| deadline().layer(attempt().layer(tool)));
}

#[tokio::test(start_paused = true)]
async fn dropped_anywhere_nothing_is_left() {
    use tower::ServiceExt;
    let tool = Scripted::by(|n, _: &u64| match n % 3 {
        0 => Step::Hang,
        1 => Step::err("down"),
        _ => Step::after(Duration::from_millis(5), Step::Ok(7)),
    })
    .capacity(2)
    .unlogged();
    let asked = tool.handle();
    let tool = deadline().layer(attempt().layer(tool));
    let report = drops::at_random(7, 3_000, || tool.clone().oneshot(1)).await;
    assert_eq!((report.finished + report.dropped, report.stuck), (3_000, 0));
    assert_eq!((asked.in_flight(), asked.reserved(), asked.waiting()), (0, 0, 0));
}
