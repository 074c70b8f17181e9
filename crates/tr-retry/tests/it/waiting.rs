//! What ends the wait between two attempts: nothing is in flight, so what the attempts said is the
//! whole truth.
use crate::common::{Heard, Tool, exact, exhausted, ms, ok, search, transient};
use std::{pin::Pin, sync::Arc, time::Duration};
use tokio::{
    spawn,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tower::{Layer, ServiceExt};
use tr_core::{
    BoxError, Cancellation, Ran, ToolCall, ToolOutcome, Verdict, code, failure_info, root_cause,
};
use tr_retry::{RetryConfig, RetryLayer, RetryStop};
use tr_testkit::tool::Handle;

fn due_in(left: Duration) -> ToolCall {
    search().deadline((Instant::now() + left).into_std())
}

/// What becomes of a call whose tool answers like this once, and then is never ready again.
async fn never_ready_again(
    config: RetryConfig,
    ran: Ran,
    call: ToolCall,
) -> (Handle<ToolCall>, Duration, BoxError) {
    let tool = Tool::script([transient("busy", ran), ok()]).capacity(1);
    let asked = tool.handle();
    let start = Instant::now();
    let call = spawn(exact(config).layer(tool).oneshot(call));
    sleep(ms(10)).await;
    asked.set_capacity(0);
    let error = call.await.unwrap().unwrap_err();
    (asked, start.elapsed(), error)
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_between_attempts_says_what_they_said() {
    for ran in [Ran::No, Ran::Yes, Ran::Unknown] {
        let (asked, took, error) =
            never_ready_again(RetryConfig::per_request(), ran, due_in(ms(700))).await;
        assert_eq!((took, asked.calls(), asked.waiting()), (ms(700), 1, 0));
        let (retry, facts) = (exhausted(&error), failure_info(&*error).unwrap());
        assert_eq!((retry.why(), retry.attempts(), retry.ran()), (RetryStop::Deadline, 1, ran));
        assert_eq!((facts.code(), facts.is_exhausted()), (code::RETRY_EXHAUSTED, true));
        assert_eq!(root_cause(&*error).to_string(), "busy it is");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_never_ready_is_waited_for_no_longer_than_an_attempt_may_start() {
    let mut config = RetryConfig::per_request();
    config.max_elapsed = Some(ms(700));
    let (asked, took, error) = never_ready_again(config, Ran::No, search()).await;
    // Timers have whole milliseconds, and an attempt may start at the very end.
    assert_eq!((took, asked.calls()), (ms(701), 1));
    assert_eq!((exhausted(&error).why(), exhausted(&error).ran()), (RetryStop::Elapsed, Ran::No));
}

#[tokio::test(start_paused = true)]
async fn what_gets_ready_in_time_is_tried_again() {
    let tool = Tool::script([transient("busy", Ran::No), ok()]).capacity(1);
    let asked = tool.handle();
    let call = spawn(exact(RetryConfig::per_request()).layer(tool).oneshot(due_in(ms(700))));
    sleep(ms(10)).await;
    asked.set_capacity(0);
    sleep(ms(500)).await;
    asked.set_capacity(1);
    call.await.unwrap().unwrap();
    assert_eq!(asked.starts(), [ms(0), ms(510)]);
}

/// A caller's own token.
#[derive(Debug)]
struct Token(CancellationToken);

impl Cancellation for Token {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.0.clone().cancelled_owned())
    }
}

fn withdrawable() -> (CancellationToken, ToolCall) {
    let (token, mut call) = (CancellationToken::new(), search());
    call.parts_mut().cancellation = Some(Arc::new(Token(token.clone())));
    (token, call)
}

fn assert_withdrawn(end: Result<ToolOutcome, BoxError>, ran: Ran) {
    let error = end.unwrap_err();
    let (retry, facts) = (exhausted(&error), failure_info(&*error).unwrap());
    assert_eq!((retry.why(), retry.attempts(), retry.ran()), (RetryStop::Cancelled, 1, ran));
    assert_eq!((facts.code(), facts.verdict()), (code::CANCELLED, Verdict::Cancelled));
    assert_eq!(root_cause(&*error).to_string(), "busy it is");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_taken_back_in_a_backoff_ends_at_once() {
    for ran in [Ran::No, Ran::Unknown] {
        let heard = Heard::new();
        let mut config = RetryConfig::per_request();
        config.jitter = (1.0, 1.0);
        let layer = RetryLayer::builder().config(config).observer(heard.clone()).build().unwrap();
        let tool = Tool::script([transient("busy", ran), ok()]);
        let (asked, (token, call), start) = (tool.handle(), withdrawable(), Instant::now());
        let call = spawn(layer.layer(tool).oneshot(call));
        sleep(ms(40)).await;
        token.cancel();
        assert_withdrawn(call.await.unwrap(), ran);
        assert_eq!((start.elapsed(), asked.calls()), (ms(40), 1));
        assert_eq!(
            heard.lines(),
            [
                "flight_search: 0 failed with busy in 0ns, again in 100ms",
                "flight_search: 0 failed, not again: cancelled"
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn so_does_one_that_waits_for_readiness_and_one_that_was_taken_back_before() {
    let tool = Tool::script([transient("busy", Ran::No), ok()]).capacity(1);
    let (asked, (token, call)) = (tool.handle(), withdrawable());
    let call = spawn(exact(RetryConfig::per_request()).layer(tool).oneshot(call));
    sleep(ms(10)).await;
    asked.set_capacity(0);
    sleep(ms(1_000)).await;
    token.cancel();
    assert_withdrawn(call.await.unwrap(), Ran::No);
    assert_eq!((asked.calls(), asked.waiting()), (1, 0));

    let tool = Tool::script([transient("busy", Ran::No), ok()]);
    let ((token, call), start) = (withdrawable(), Instant::now());
    token.cancel();
    assert_withdrawn(exact(RetryConfig::per_request()).layer(tool).oneshot(call).await, Ran::No);
    assert_eq!(start.elapsed(), ms(0));
}
