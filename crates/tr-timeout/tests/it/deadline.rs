//! Behavior of the deadline.
use super::common::Heard;
use std::time::Duration;
use tokio::time::{Instant, advance};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{
    BoxError, Params, Ran, ToolCall, Verdict, code, failure_info, internal::CoarseInstant,
};
use tr_testkit::tool::{Scripted, Step};
use tr_timeout::{
    AttemptTimedOut, AttemptTimeoutLayer, DeadlineExceeded, DeadlineLayer, DefaultDeadlineLayer,
};

const SECOND: Duration = Duration::from_secs(1);

fn due_in(left: Duration) -> ToolCall {
    let deadline = (Instant::now() + left).into_std();
    ToolCall::new("flight_search", Params::empty_object()).request_id("r-1").deadline(deadline)
}

fn unhurried() -> ToolCall {
    ToolCall::new("flight_search", Params::empty_object())
}

fn per_call(after: Duration) -> DeadlineLayer {
    DeadlineLayer::builder().per_call(after).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_deadline() {
    let tool = Scripted::script([Step::<()>::Hang]);
    let asked = tool.handle();
    let mut tool = DeadlineLayer::new().layer(tool);
    let mut call = Box::pin(tool.ready().await.unwrap().call(due_in(45 * SECOND)));
    let start = Instant::now();
    let error = call.as_mut().await.unwrap_err();

    assert_eq!(
        (error.to_string().as_str(), start.elapsed()),
        ("Call timeout after 45s", 45 * SECOND)
    );
    let facts = failure_info(&*error).unwrap();
    assert_eq!((facts.code(), facts.verdict()), (code::TIMEOUT, Verdict::TRANSIENT));
    assert_eq!(facts.ran(), Ran::Unknown);
    assert_eq!((asked.in_flight(), asked.cancelled()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_sooner_of_deadline_and_allowance_counts() {
    for (left, allowed, ends) in [(3, 5, 3), (5, 3, 3), (4, 4, 4)] {
        let tool = per_call(allowed * SECOND).layer(Scripted::script([Step::<()>::Hang]));
        let start = Instant::now();
        let error = tool.oneshot(due_in(left * SECOND)).await.unwrap_err();
        assert_eq!(error.to_string(), format!("Call timeout after {ends}s"));
        assert_eq!(start.elapsed(), ends * SECOND);
    }
    let tool = per_call(2 * SECOND).layer(Scripted::script([Step::<()>::Hang]));
    let error = tool.oneshot(unhurried()).await.unwrap_err();
    assert_eq!(error.to_string(), "Call timeout after 2s");
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline_nothing_is_bounded() {
    let late = Step::after(1_000_000 * SECOND, Step::Ok(7));
    let tool = DeadlineLayer::new().layer(Scripted::script([late]));
    assert_eq!(tool.oneshot(unhurried()).await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_too_late_never_reaches_the_tool() {
    let tool = Scripted::script([Step::Ok(())]).capacity(1);
    let asked = tool.handle();
    let mut tool = DeadlineLayer::new().layer(tool);
    let call = due_in(SECOND);
    advance(SECOND).await;

    let error = tool.ready().await.unwrap().call(call).await.unwrap_err();
    assert_eq!(error.to_string(), "Call timeout: the deadline had passed before the call began");
    assert_eq!(error.downcast_ref::<DeadlineExceeded>().unwrap().ran(), Ran::No);
    // The idle instance does not keep what it reserved in `poll_ready`.
    assert_eq!((asked.calls(), asked.reserved()), (0, 0));
    tool.ready().await.unwrap().call(due_in(SECOND)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_readiness_past_its_deadline_did_not_run() {
    let tool = Scripted::script([Step::Ok(())]).capacity(0);
    let error = DeadlineLayer::new().layer(tool).oneshot(due_in(SECOND)).await.unwrap_err();
    assert_eq!(error.downcast_ref::<DeadlineExceeded>().unwrap().ran(), Ran::No);
}

#[tokio::test(start_paused = true)]
async fn so_did_one_that_waits_inside_of_the_attempt_timeout() {
    let tool = || Scripted::script([Step::<()>::Hang]);
    let both = |tool| {
        let attempt = AttemptTimeoutLayer::builder().after(30 * SECOND).build().unwrap();
        ServiceBuilder::new().layer(DeadlineLayer::new()).layer(attempt).service(tool)
    };
    let full = tool().capacity(0);
    let (asked, start) = (full.handle(), Instant::now());
    let error = both(full).oneshot(due_in(20 * SECOND)).await.unwrap_err();
    assert_eq!((start.elapsed(), asked.calls(), asked.waiting()), (20 * SECOND, 0, 0));
    assert_eq!(error.to_string(), "Call timeout: the tool was not ready for 20s");
    let exceeded = error.downcast_ref::<DeadlineExceeded>().unwrap();
    assert_eq!((exceeded.ran(), exceeded.after()), (Ran::No, 20 * SECOND));
    let facts = failure_info(&*error).unwrap();
    assert_eq!((facts.code(), facts.verdict()), (code::TIMEOUT, Verdict::TRANSIENT));

    // Once it is called, it may run.
    let full = tool().capacity(0);
    let asked = full.handle();
    let call = tokio::spawn(both(full).oneshot(due_in(20 * SECOND)));
    tokio::time::sleep(10 * SECOND).await;
    asked.set_capacity(1);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "Call timeout after 20s");
    assert_eq!(error.downcast_ref::<DeadlineExceeded>().unwrap().ran(), Ran::Unknown);

    // The attempt's own time counts as before, and without a deadline nothing else does.
    for call in [due_in(60 * SECOND), unhurried()] {
        let error = both(tool().capacity(0)).oneshot(call).await.unwrap_err();
        assert_eq!(error.downcast_ref::<AttemptTimedOut>().unwrap().ran(), Ran::No);
        assert_eq!(error.to_string(), "Tool timeout after 30s");
    }
}

/// Whoever waits further in gives up by himself, and says what he knows.
#[tokio::test(start_paused = true)]
async fn an_allowance_is_a_deadline_for_the_layers_further_in() {
    let due = service_fn(async |call: ToolCall| Ok::<_, BoxError>(call.parts().deadline));
    let in_3s = Some((Instant::now() + 3 * SECOND).into_std());
    for call in [unhurried(), due_in(5 * SECOND), due_in(3 * SECOND)] {
        assert_eq!(per_call(3 * SECOND).layer(due).oneshot(call).await.unwrap(), in_3s);
    }
    let sooner = due_in(2 * SECOND);
    let deadline = sooner.parts().deadline;
    assert_eq!(per_call(3 * SECOND).layer(due).oneshot(sooner).await.unwrap(), deadline);
    assert_eq!(DeadlineLayer::new().layer(due).oneshot(unhurried()).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_innermost_that_fires_names_itself() {
    for (left, attempt, text) in [
        (60, 30, "Tool timeout after 30s"),
        (30, 30, "Tool timeout after 30s"),
        (20, 30, "Call timeout after 20s"),
    ] {
        let attempt = AttemptTimeoutLayer::builder().after(attempt * SECOND).build().unwrap();
        let tool = Scripted::script([Step::<()>::Hang]);
        let tool = ServiceBuilder::new().layer(DeadlineLayer::new()).layer(attempt).service(tool);
        let error = tool.oneshot(due_in(left * SECOND)).await.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!(error.is::<AttemptTimedOut>(), text.starts_with("Tool"));
    }
}

#[tokio::test(start_paused = true)]
async fn who_looks_at_the_clock_notes_the_time() {
    let stamp = service_fn(async |call: ToolCall| Ok::<_, BoxError>(call.stamp()));
    let tool = DeadlineLayer::new().layer(stamp);
    let now = CoarseInstant::at(Instant::now().into_std());
    assert_eq!(tool.clone().oneshot(due_in(SECOND)).await.unwrap(), Some(now));
    assert_eq!(tool.oneshot(unhurried()).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_observer_hears_of_each_deadline_that_passed() {
    let heard = Heard::new();
    let layer = DeadlineLayer::builder().observer(heard.clone()).build().unwrap();
    let tool = layer.layer(Scripted::script([Step::<()>::Hang]));
    let late = due_in(Duration::ZERO);
    assert!(tool.clone().oneshot(late).await.is_err());
    assert!(tool.oneshot(due_in(SECOND)).await.is_err());
    assert_eq!(heard.lines(), ["flight_search r-1: 0ns, No", "flight_search r-1: 1s, Unknown"]);

    // It is told once of each, whichever layer notices.
    let heard = Heard::new();
    let deadline = DeadlineLayer::builder().observer(heard.clone()).build().unwrap();
    let attempt = AttemptTimeoutLayer::builder().observer(heard.clone()).build().unwrap();
    let full = Scripted::script([Step::Ok(())]).capacity(0);
    let tool = ServiceBuilder::new().layer(deadline).layer(attempt).service(full);
    assert!(tool.oneshot(due_in(SECOND)).await.is_err());
    assert_eq!(heard.lines(), ["flight_search r-1: 1s, No"]);
}

#[test]
fn an_allowance_that_bounds_nothing_is_refused() {
    let error = DeadlineLayer::builder().per_call(Duration::from_micros(1)).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid timeout configuration: `per_call` is 1µs, must be 1ms to 24h"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_brings_no_deadline_gets_the_default() {
    for (own, ends) in [(None, 4), (Some(3), 3), (Some(9), 9)] {
        let tool = ServiceBuilder::new()
            .layer(DefaultDeadlineLayer::new(4 * SECOND).unwrap())
            .layer(DeadlineLayer::new())
            .service(Scripted::script([Step::<()>::Hang]));
        let start = Instant::now();
        let call = own.map_or_else(unhurried, |left| due_in(left * SECOND));
        let error = tool.oneshot(call).await.unwrap_err();
        assert_eq!(error.to_string(), format!("Call timeout after {ends}s"));
        assert_eq!(start.elapsed(), ends * SECOND);
    }
    let late = Scripted::script([Step::after(1_000_000 * SECOND, Step::Ok(7))]);
    let tool = DefaultDeadlineLayer::new(None).unwrap().layer(DeadlineLayer::new().layer(late));
    assert_eq!(tool.oneshot(unhurried()).await.unwrap(), 7);

    for wrong in [Duration::ZERO, Duration::from_secs(86_401)] {
        let error = DefaultDeadlineLayer::new(wrong).unwrap_err();
        let text =
            format!("invalid timeout configuration: `deadline` is {wrong:?}, must be 1ms to 24h");
        assert_eq!(error.to_string(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn back_pressure_passes_if_asked_for() {
    for (passes_on, ready) in [(false, true), (true, false)] {
        let tool = Scripted::script([Step::Ok(())]).capacity(0);
        let layer = DeadlineLayer::builder().back_pressure(passes_on).build().unwrap();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let polled = Service::<ToolCall>::poll_ready(&mut layer.layer(tool), &mut cx);
        assert_eq!(polled.is_ready(), ready);
    }
}
