//! What ends retrying: breakers, deadlines, readiness, and retries further in.
use crate::common::{
    Heard, Tool, busy, call, exact, exhausted, ms, ok, permanent, search, timeout, transient,
};
use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{
    BoxError, Chunk, DefaultPolicy, Effect, FailureInfo, Ran, ResponsePolicy, ToolCall, ToolError,
    ToolOutcome, Verdict, causes,
    chunks::{ChunkLimits, channel},
    code, failure_info, find, root_cause,
};
use tr_retry::{RetryConfig, RetryExhausted, RetryLayer, RetryStop};
use tr_testkit::tool::{Failure, Handle, Playing, Step};

fn due_in(millis: u64) -> ToolCall {
    search().deadline((Instant::now() + ms(millis)).into_std())
}

/// A breaker's refusal, made as tr-breaker makes it: nobody is to retry it on the spot.
#[derive(Debug)]
struct Open;

impl fmt::Display for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the circuit is open")
    }
}

impl Error for Open {}

fn open() -> Step<ToolOutcome> {
    let verdict = Verdict::Transient { retry_after: Some(ms(30_000)) };
    Step::err(FailureInfo::new(code::CIRCUIT_OPEN, Ran::No, verdict).exhausted().because(Open))
}

#[tokio::test(start_paused = true)]
async fn tr_11_an_open_breaker_ends_retrying_at_once() {
    let tool = Tool::script([timeout(), timeout(), open()]);
    let asked = tool.handle();
    let start = Instant::now();
    let error = exact(RetryConfig::default()).layer(tool).oneshot(search()).await.unwrap_err();

    assert_eq!((asked.calls(), start.elapsed()), (3, ms(200 + 400)), "no further delay");
    let retry = exhausted(&error);
    assert_eq!(
        (retry.why(), retry.code(), retry.ran()),
        (RetryStop::CircuitOpen, code::CIRCUIT_OPEN, Ran::Unknown)
    );
    assert!(failure_info(&*error).unwrap().is_exhausted());
    assert!(find::<Open>(&*error).is_some(), "the refusal");
    assert_eq!(root_cause(&*error).to_string(), "timeout it is", "the last real cause");
    assert_eq!(
        error.to_string(),
        "gave up after 2 attempts (the circuit breaker refused the next attempt; earlier: timeout, timeout): circuit_open: the tool did not run"
    );
}

/// Not what never got as far as the tool; a refused connection did, the tool found that out.
#[tokio::test(start_paused = true)]
async fn only_executions_are_counted() {
    let ends = |code, ran| Step::err(FailureInfo::new(code, ran, Verdict::TRANSIENT));
    let not_ready = || ends(code::TIMEOUT, Ran::No);
    let refused = || ends("network_error", Ran::No);
    for (script, attempts, text) in [
        (
            [not_ready(), not_ready(), not_ready(), not_ready()],
            0,
            "before an attempt reached the tool",
        ),
        ([not_ready(), refused(), not_ready(), not_ready()], 1, "after 1 attempt"),
        ([refused(), timeout(), refused(), not_ready()], 3, "after 3 attempts"),
        ([refused(), refused(), refused(), refused()], 4, "after 4 attempts"),
    ] {
        let tool = Tool::script(script);
        let error = exact(RetryConfig::default()).layer(tool).oneshot(search()).await.unwrap_err();
        let retry = exhausted(&error);
        assert_eq!((retry.attempts(), retry.retried().len()), (attempts, 3));
        let text = format!("gave up {text} (no more are allowed; earlier: ");
        assert!(error.to_string().starts_with(&text), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn tr_11_a_first_refusal_passes_untouched() {
    let tool = Tool::script([open()]);
    let error = RetryLayer::default().layer(tool).oneshot(search()).await.unwrap_err();
    assert_eq!(error.to_string(), "circuit_open: the tool did not run");
    assert!(find::<RetryExhausted>(&*error).is_none());
}

#[tokio::test(start_paused = true)]
async fn no_attempt_starts_past_the_deadline() {
    for (left, starts) in [(100, 1), (101, 2), (300, 2), (301, 3), (10_000, 5)] {
        let tool = Tool::script([timeout()]).then_repeat_last();
        let asked = tool.handle();
        let error = exact(RetryConfig::fixed_cadence()).layer(tool).oneshot(due_in(left)).await;
        let error = error.unwrap_err();
        assert_eq!((asked.calls(), exhausted(&error).code()), (starts, code::RETRY_EXHAUSTED));
        let why = if starts < 5 { RetryStop::Deadline } else { RetryStop::Attempts };
        assert_eq!((exhausted(&error).why(), exhausted(&error).attempts()), (why, starts));
    }
}

/// No retry was left out for want of time: there was no time for the attempt itself.
#[tokio::test(start_paused = true)]
async fn an_only_attempt_that_ends_at_the_deadline_itself_keeps_its_error() {
    for (step, left_alone) in
        [(transient(code::TIMEOUT, Ran::No), true), (transient("busy", Ran::No), false)]
    {
        let tool = Tool::script([Step::after(ms(500), step)]);
        let error = RetryLayer::per_request().layer(tool).oneshot(due_in(500)).await.unwrap_err();
        assert_eq!(error.is::<Failure>(), left_alone);
    }
    let tool = Tool::script([busy(ms(0)), Step::after(ms(500), timeout())]);
    let error =
        exact(RetryConfig::per_request()).layer(tool).oneshot(due_in(600)).await.unwrap_err();
    assert_eq!((exhausted(&error).why(), exhausted(&error).attempts()), (RetryStop::Deadline, 2));
    assert_eq!(exhausted(&error).code(), code::RETRY_EXHAUSTED);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for_and_a_backoff_on_top() {
    let tool = Tool::script([busy(ms(3_000)), ok()]);
    let asked = tool.handle();
    exact(RetryConfig::fixed_cadence()).layer(tool).oneshot(search()).await.unwrap();
    assert_eq!(asked.starts(), [0, 3_000 + 100].map(ms));
}

#[tokio::test(start_paused = true)]
async fn retry_after_beyond_the_deadline_fails_now_and_carries_the_hint() {
    let mut config = RetryConfig::fixed_cadence();
    config.max_elapsed = Some(ms(2_000));
    let patient = RetryLayer::builder().config(config).build().unwrap();
    for (layer, call, why) in [
        (RetryLayer::per_request(), due_in(2_000), RetryStop::Deadline),
        (patient, call(Effect::Mutating), RetryStop::Elapsed),
    ] {
        let tool = Tool::script([busy(ms(3_000))]);
        let start = Instant::now();
        let error = layer.layer(tool).oneshot(call).await.unwrap_err();
        assert_eq!(start.elapsed(), ms(0));
        assert_eq!((exhausted(&error).why(), exhausted(&error).attempts()), (why, 1));
        let facts = failure_info(&*error).unwrap();
        assert_eq!(facts.verdict(), Verdict::Transient { retry_after: Some(ms(3_000)) });
        assert_eq!((facts.code(), facts.ran()), (code::RETRY_EXHAUSTED, Ran::No));
    }
}

#[tokio::test(start_paused = true)]
async fn getting_ready_past_the_deadline_starts_no_attempt() {
    let tool = Tool::script([Step::after(ms(10), timeout()), ok()]).capacity(1);
    let asked = tool.handle();
    let rival = tool.clone();
    let mut retry = exact(RetryConfig::per_request()).layer(tool);
    let call = retry.ready().await.unwrap().call(due_in(500));
    drop(retry);
    let call = tokio::spawn(call);
    sleep(ms(5)).await;
    let taken = tokio::spawn(async move {
        let mut rival = rival;
        rival.ready().await.unwrap();
        sleep(ms(1_000)).await;
    });
    let start = Instant::now() - ms(5);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(start.elapsed(), ms(500), "it does not wait for what comes too late");
    taken.await.unwrap();
    assert_eq!((asked.calls(), exhausted(&error).why()), (1, RetryStop::Deadline));
    assert_eq!(exhausted(&error).attempts(), 1);
    assert_eq!(
        error.to_string(),
        "gave up after 1 attempt (the next attempt would start after the deadline): timeout: the tool may have run"
    );
}

/// Gets ready once.
struct Mortal(Tool, bool);

impl Clone for Mortal {
    fn clone(&self) -> Self {
        Self(self.0.clone(), true)
    }
}

impl Service<ToolCall> for Mortal {
    type Response = ToolOutcome;
    type Error = Failure;
    type Future = Playing<ToolCall, ToolOutcome>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        match self.1 {
            true => Poll::Ready(Err(Failure::new("the tool is gone"))),
            false => Service::<ToolCall>::poll_ready(&mut self.0, cx),
        }
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        self.0.call(call)
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_readiness_is_terminal() {
    let tool = Tool::script([timeout()]);
    let asked = tool.handle();
    let mut retry = RetryLayer::per_request().layer(Mortal(tool, false));
    let error = retry.ready().await.unwrap().call(search()).await.unwrap_err();
    assert_eq!((exhausted(&error).why(), exhausted(&error).attempts()), (RetryStop::Unready, 1));
    assert_eq!((exhausted(&error).ran(), asked.calls()), (Ran::Unknown, 1));
    assert_eq!(
        error.to_string(),
        "gave up after 1 attempt (the tool accepts no more calls): the tool is gone"
    );
    assert_eq!(root_cause(&*error).to_string(), "timeout it is", "what it had failed with before");
    assert!(failure_info(&*error).unwrap().is_exhausted());
}

#[tokio::test(start_paused = true)]
async fn of_a_response_before_a_retry_that_cannot_start_its_code_is_left() {
    let mut busy = ToolError::new("http_503", "try later");
    (busy.verdict, busy.ran) = (Some(Verdict::TRANSIENT), Ran::No);
    let tool = Tool::script([Step::Ok(ToolOutcome::failure(busy))]);
    let mut retry = RetryLayer::per_request().layer(Mortal(tool, false));
    let error = retry.ready().await.unwrap().call(search()).await.unwrap_err();
    assert_eq!((exhausted(&error).why(), exhausted(&error).ran()), (RetryStop::Unready, Ran::No));
    assert_eq!(
        error.to_string(),
        "gave up after 1 attempt (the tool accepts no more calls): the tool is gone"
    );
    let texts: Vec<_> = causes(&*error).map(ToString::to_string).collect();
    assert_eq!(texts.last().unwrap(), "http_503: the tool did not run");
}

/// Attempts at the leaf under this many layers of retry, one around another.
async fn at_the_leaf(layers: usize, tool: Tool) -> (usize, Result<ToolOutcome, BoxError>) {
    let asked: Handle<ToolCall> = tool.handle();
    let retry = RetryLayer::default;
    let end = match layers {
        1 => retry().layer(tool).oneshot(search()).await,
        2 => retry().layer(retry().layer(tool)).oneshot(search()).await,
        _ => {
            let three = ServiceBuilder::new().layer(retry()).layer(retry()).layer(retry());
            three.service(tool).oneshot(search()).await
        }
    };
    (asked.calls(), end)
}

#[tokio::test(start_paused = true)]
async fn nested_retries_do_not_multiply() {
    for layers in 1..=3 {
        let (calls, end) = at_the_leaf(layers, Tool::script([timeout()]).then_repeat_last()).await;
        assert_eq!(calls, 4, "{layers} layers");
        assert_eq!(exhausted(&end.unwrap_err()).code(), code::RETRY_EXHAUSTED);
    }
}

#[tokio::test(start_paused = true)]
async fn nested_retries_of_a_failing_response_do_not_multiply() {
    let mut failure = ToolError::new("http_503", "try later");
    (failure.verdict, failure.ran) = (Some(Verdict::TRANSIENT), Ran::No);
    for layers in 1..=3 {
        let tool = Tool::script([Step::Ok(ToolOutcome::failure(failure.clone()))]);
        let (calls, end) = at_the_leaf(layers, tool.then_repeat_last()).await;
        let outcome = end.unwrap();
        assert_eq!((calls, outcome.retried().len()), (4, 3), "{layers} layers");
        let error = outcome.error().unwrap();
        assert_eq!((&*error.code, &*error.message), ("http_503", "try later"));
        assert_eq!((error.exhausted, error.ran), (true, Ran::No));
        assert!(DefaultPolicy.classify(Ok(&outcome)).exhausted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_response_knows_of_the_attempts_before_it() {
    let mut refused = ToolError::new("http_400", "no such city");
    (refused.verdict, refused.ran) = (Some(Verdict::Permanent), Ran::No);
    let tool = Tool::script([timeout(), Step::Ok(ToolOutcome::failure(refused))]);
    let outcome = RetryLayer::per_request().layer(tool).oneshot(search()).await.unwrap();
    let error = outcome.error().unwrap();
    assert_eq!((error.ran, error.exhausted, outcome.retried().len()), (Ran::Unknown, false, 1));
}

#[tokio::test(start_paused = true)]
async fn ut_07_nothing_is_retried_after_a_streams_first_chunk() {
    for (index, calls) in [(0, 2), (1, 1), (7, 1)] {
        let mut broken = ToolOutcome::failure(ToolError::new("ECONNRESET", "read ECONNRESET"));
        broken.parts_mut().chunk = Some(Chunk { index, last: true });
        let tool = Tool::script([Step::Ok(broken), ok()]);
        let asked = tool.handle();
        let outcome = RetryLayer::per_request().layer(tool).oneshot(search()).await.unwrap();
        assert_eq!((asked.calls(), outcome.error().is_none()), (calls, calls == 2), "{index}");
    }
}

#[tokio::test(start_paused = true)]
async fn ut_07_an_attempt_that_sent_a_chunk_is_the_last_whatever_its_error() {
    for (sends, calls, why) in [(false, 4, "attempts"), (true, 1, "streamed")] {
        let heard = Heard::new();
        let layer = RetryLayer::builder().observer(heard.clone()).build().unwrap();
        let asked = Arc::new(AtomicU32::new(0));
        let counted = asked.clone();
        let tool = service_fn(move |call: ToolCall| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                let mut sink = call.chunk_sink();
                if sends {
                    sink.send("a").await?;
                }
                // A refusal that did not run is retried for any tool.
                Err::<ToolOutcome, _>(BoxError::from(FailureInfo::new(
                    "busy",
                    Ran::No,
                    Verdict::TRANSIENT,
                )))
            }
        });
        let (chunks, _receiver) = channel(ChunkLimits::default());
        let mut call = search();
        call.parts_mut().chunks = Some(chunks.clone());
        layer.layer(tool).oneshot(call).await.unwrap_err();
        assert_eq!((asked.load(Ordering::Relaxed), chunks.sent()), (calls, u64::from(sends)));
        assert!(heard.lines().last().unwrap().contains(why), "{:?}", heard.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_retried_is_left_as_it_is() {
    for step in [
        permanent(),
        Step::err(FailureInfo::new(code::CANCELLED, Ran::No, Verdict::Cancelled)),
        Step::err(FailureInfo::new("spent", Ran::No, Verdict::TRANSIENT).exhausted()),
    ] {
        let tool = Tool::script([step]);
        let error = RetryLayer::default().layer(tool).oneshot(search()).await.unwrap_err();
        assert!(error.is::<Failure>());
    }
}

#[tokio::test(start_paused = true)]
async fn the_observer_hears_of_retries_and_of_those_not_made() {
    let heard = Heard::new();
    let mut config = RetryConfig::per_request();
    config.jitter = (1.0, 1.0);
    let layer = RetryLayer::builder().config(config).observer(heard.clone()).build().unwrap();
    let slow = Step::after(ms(7), timeout());
    let tool = Tool::script([
        slow,
        timeout(),
        transient("down", Ran::No),
        permanent(),
        timeout(),
        timeout(),
    ]);
    let mut tool = layer.layer(tool);
    let mut third = search();
    third.set_attempt(2);
    for call in [search(), search(), call(Effect::Mutating), third] {
        let _ = tool.ready().await.unwrap().call(call).await;
    }
    assert_eq!(
        heard.lines(),
        [
            "flight_search: 0 failed with timeout in 7ms, again in 100ms",
            "flight_search: 1 failed with timeout in 0ns, again in 200ms",
            "flight_search: 2 failed, not again: attempts",
            "flight_search: 0 failed, not again: effect",
            "flight_search: 2 failed, not again: retried_outside",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_says_which_part_of_the_delay_the_server_asked_for() {
    let heard = Heard::new();
    let mut config = RetryConfig::per_request();
    config.jitter = (1.0, 1.0);
    let layer = RetryLayer::builder().config(config).observer(heard.clone()).build().unwrap();
    layer.layer(Tool::script([busy(ms(3_000)), ok()])).oneshot(search()).await.unwrap();
    let told = "flight_search: 0 failed with busy in 0ns, again in 3.1s, 3s of it asked for";
    assert_eq!(heard.lines(), [told]);
}
