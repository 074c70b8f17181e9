//! Behavior of the attempt timeout.
use super::common::Heard;
use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};
use tokio::{
    task::coop,
    time::{Instant, advance},
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{
    BoxError, CallParts, Params, Ran, ToolCall, ToolManifest, Verdict, code, failure_info,
};
use tr_testkit::tool::{End, Scripted, Step};
use tr_timeout::{AttemptTimedOut, AttemptTimeoutLayer};

const SECOND: Duration = Duration::from_secs(1);

fn call() -> ToolCall {
    ToolCall::new("flight_search", Params::empty_object()).request_id("r-1")
}

fn bounded(after: Duration) -> AttemptTimeoutLayer {
    AttemptTimeoutLayer::builder().after(after).build().unwrap()
}

fn ran(error: &BoxError) -> Ran {
    error.downcast_ref::<AttemptTimedOut>().expect("a timeout of an attempt").ran()
}

#[tokio::test(start_paused = true)]
async fn eh_4_1_the_tool_is_terminated_at_30s() {
    let tool = Scripted::script([Step::<()>::Hang]);
    let asked = tool.handle();
    let error = bounded(30 * SECOND).layer(tool).oneshot(call()).await.unwrap_err();

    assert_eq!(error.to_string(), "Tool timeout after 30s");
    let (ended, how) = asked.attempts()[0].ended.unwrap();
    assert_eq!((ended - asked.attempts()[0].started, how), (30 * SECOND, End::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn eh_4_3_a_timeout_is_transient() {
    let tool = Scripted::script([Step::<()>::Hang]);
    let error = bounded(30 * SECOND).layer(tool).oneshot(call()).await.unwrap_err();
    let facts = failure_info(&*error).unwrap();
    assert_eq!((facts.verdict(), facts.code()), (Verdict::TRANSIENT, code::TIMEOUT));
    assert_eq!((facts.ran(), ran(&error)), (Ran::Unknown, Ran::Unknown));
}

#[tokio::test(start_paused = true)]
async fn the_attempt_is_dropped_when_time_runs_out_not_when_its_future_goes() {
    let tool = Scripted::script([Step::<()>::Hang]);
    let asked = tool.handle();
    let mut tool = bounded(SECOND).layer(tool);
    let mut attempt = Box::pin(tool.ready().await.unwrap().call(call()));
    assert!(attempt.as_mut().await.is_err());
    assert_eq!((asked.in_flight(), asked.cancelled()), (0, 1));
    drop(attempt);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_never_ready_times_out_without_having_run() {
    let tool = Scripted::script([Step::Ok(())]).capacity(0);
    let asked = tool.handle();
    let start = Instant::now();
    let error = bounded(SECOND).layer(tool).oneshot(call()).await.unwrap_err();
    assert_eq!((ran(&error), start.elapsed()), (Ran::No, SECOND));
    assert_eq!((asked.calls(), asked.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_readiness_and_running_share_one_timer() {
    let tool = Scripted::script([Step::<()>::Hang]).capacity(0);
    let asked = tool.handle();
    let start = Instant::now();
    let attempt = tokio::spawn(bounded(10 * SECOND).layer(tool).oneshot(call()));
    tokio::time::sleep(4 * SECOND).await;
    asked.set_capacity(1);
    let error = attempt.await.unwrap().unwrap_err();
    assert_eq!((ran(&error), start.elapsed()), (Ran::Unknown, 10 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_readiness_passes_untouched() {
    let tool = Scripted::script([Step::Ok(())]).fails_readiness("gone for good");
    let error = bounded(SECOND).layer(tool).oneshot(call()).await.unwrap_err();
    assert_eq!(error.to_string(), "gone for good");
}

#[tokio::test(start_paused = true)]
async fn the_request_overrides_the_layer() {
    let ask = async |layer: &AttemptTimeoutLayer, call: ToolCall| {
        let tool = layer.layer(Scripted::script([Step::<()>::Hang]));
        tool.oneshot(call).await.unwrap_err().to_string()
    };
    let mut with_hint = CallParts::new("t", Params::empty_object());
    with_hint.hints.timeout = Some(SECOND * 3 / 2);
    let mut manifest = ToolManifest::new("t");
    manifest.timeout = Some(SECOND / 2);
    let layer = bounded(30 * SECOND);

    assert_eq!(ask(&layer, with_hint.clone().into()).await, "Tool timeout after 1.5s");
    let manifested = ToolCall::new("t", Params::empty_object()).manifested(Arc::new(manifest));
    assert_eq!(ask(&layer, manifested).await, "Tool timeout after 500ms");
    assert_eq!(
        ask(&AttemptTimeoutLayer::per_request(), with_hint.into()).await,
        "Tool timeout after 1.5s"
    );
}

#[tokio::test(start_paused = true)]
async fn presets_have_their_durations() {
    for (layer, text) in [
        (AttemptTimeoutLayer::default(), "Tool timeout after 10s"),
        (AttemptTimeoutLayer::builder().build().unwrap(), "Tool timeout after 10s"),
        (AttemptTimeoutLayer::thirty_seconds(), "Tool timeout after 30s"),
    ] {
        let tool = layer.layer(Scripted::script([Step::<()>::Hang]));
        assert_eq!(tool.oneshot(call()).await.unwrap_err().to_string(), text);
    }
    for unbounded in [
        AttemptTimeoutLayer::per_request(),
        AttemptTimeoutLayer::builder().only_as_requested().build().unwrap(),
    ] {
        let late = Step::after(1_000_000 * SECOND, Step::Ok(7));
        assert_eq!(unbounded.layer(Scripted::script([late])).oneshot(call()).await.unwrap(), 7);
    }
}

#[test]
fn a_tool_that_answers_at_once_arms_no_timer() {
    // Outside a runtime a timer cannot even be made.
    let mut tool = bounded(SECOND).layer(service_fn(async |_| Ok::<_, BoxError>(7)));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(Service::<ToolCall>::poll_ready(&mut tool, &mut cx).is_ready());
    let mut attempt = Box::pin(tool.call(call()));
    assert!(matches!(attempt.as_mut().poll(&mut cx), Poll::Ready(Ok(7))));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_uses_up_its_tasks_budget_is_timed_out_all_the_same() {
    let greedy = service_fn(|_: ToolCall| {
        poll_fn(|cx| {
            while let Poll::Ready(unit) = coop::poll_proceed(cx) {
                unit.made_progress();
            }
            Poll::<Result<(), BoxError>>::Pending
        })
    });
    // The budget is a task's, so it is spawned; it never rests, so the clock has to be pushed.
    let attempt = tokio::spawn(bounded(SECOND).layer(greedy).oneshot(call()));
    for _ in 0..10 {
        advance(SECOND).await;
    }
    assert!(attempt.is_finished());
    assert_eq!(attempt.await.unwrap().unwrap_err().to_string(), "Tool timeout after 1s");
}

#[tokio::test(start_paused = true)]
async fn the_observer_hears_of_each_timeout_and_of_nothing_else() {
    let heard = Heard::new();
    let layer = AttemptTimeoutLayer::builder().after(SECOND).observer(heard.clone());
    let hangs_once = Scripted::script([Step::Hang, Step::Ok(()), Step::err("down")]);
    let mut tool = ServiceBuilder::new().layer(layer.build().unwrap()).service(hangs_once);
    for _ in 0..3 {
        let _ = tool.ready().await.unwrap().call(call()).await;
    }
    assert_eq!(heard.lines(), ["flight_search r-1: 1s, Unknown"]);
}

#[test]
fn a_duration_that_no_timer_can_keep_is_refused() {
    for (after, shown) in
        [(Duration::ZERO, "0ns"), (Duration::MAX, "18446744073709551615.999999999s")]
    {
        let error = AttemptTimeoutLayer::builder().after(after).build().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("invalid timeout configuration: `after` is {shown}, must be 1ms to 24h")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn back_pressure_reaches_what_is_outside() {
    use tower::load_shed::error::Overloaded;
    let tool = Scripted::by(|_, _: &ToolCall| Step::after(5 * SECOND, Step::Ok(()))).capacity(1);
    let asked = tool.handle();
    let stack = ServiceBuilder::new().load_shed().layer(bounded(10 * SECOND)).service(tool);
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(stack.clone().oneshot(call()))).collect();
    let mut shed = 0;
    for call in calls {
        let end = call.await.unwrap();
        shed += usize::from(end.is_err_and(|error| error.is::<Overloaded>()));
    }
    assert_eq!((asked.calls(), shed), (1, 9));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_readiness_longer_than_the_limit() {
    let tool = Scripted::script([Step::Ok(())]).capacity(0);
    let asked = tool.handle();
    let heard = Heard::new();
    let layer = AttemptTimeoutLayer::builder().after(2 * SECOND).observer(heard.clone());
    let mut tool = layer.build().unwrap().layer(tool);
    let start = Instant::now();
    tool.ready().await.unwrap();
    assert_eq!(start.elapsed(), 2 * SECOND);
    // What becomes ready now is too late for this call, and in time for the next.
    asked.set_capacity(1);
    let error = tool.call(call()).await.unwrap_err();
    assert_eq!((ran(&error), asked.calls()), (Ran::No, 0));
    assert_eq!(heard.lines(), ["flight_search r-1: 2s, No"]);
    tool.ready().await.unwrap().call(call()).await.unwrap();
    assert_eq!(start.elapsed(), 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_layer_without_a_limit_of_its_own_waits_in_the_call() {
    let tool = Scripted::script([Step::Ok(())]).capacity(0);
    let mut tool = AttemptTimeoutLayer::per_request().layer(tool);
    let mut parts = CallParts::new("t", Params::empty_object());
    parts.hints.timeout = Some(SECOND);
    let start = Instant::now();
    let error = tool.ready().await.unwrap().call(ToolCall::from(parts)).await.unwrap_err();
    assert_eq!((ran(&error), start.elapsed()), (Ran::No, SECOND));
}
