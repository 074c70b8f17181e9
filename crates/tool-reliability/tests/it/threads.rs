//! What users of breakers, retries and idempotency keys reported in public, rebuilt. Each test names its threads:
//! `owner/repository#number` on GitHub.
use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{Instant, advance, sleep};
use tool_reliability::{
    BoxError, Effect, Params, Ran, ToolCall, ToolOutcome,
    breaker::{BreakerHandle, BreakerLayer, CircuitOpen},
    core::{BreakerState, KeyRef, causes, failure_info, find, ran},
    idempotency::IdempotencyLayer,
    retry::{RetryExhausted, RetryLayer},
    timeout::{AttemptTimeoutLayer, DeadlineLayer},
};
use tower::{Service, ServiceBuilder, ServiceExt as _, service_fn};

const SECOND: Duration = Duration::from_secs(1);

/// A service that answers its nth call, from 0, as it is told, and counts.
fn service<E, F>(
    calls: &Arc<AtomicU32>,
    end: F,
) -> impl Service<u32, Response = u32, Error = E, Future: Send> + Clone + Send + use<E, F>
where
    E: Into<BoxError> + Send + 'static,
    F: Fn(u32) -> Result<u32, E> + Clone + Send + 'static,
{
    let calls = calls.clone();
    service_fn(move |_: u32| std::future::ready(end(calls.fetch_add(1, Relaxed))))
}

fn down() -> BoxError {
    "503 Service Unavailable".into()
}

fn retry() -> tool_reliability::retry::Builder<
    tool_reliability::core::policy::WithEffectBy<tool_reliability::core::NamedPolicy, u32>,
> {
    RetryLayer::named("t").effect(|_: &u32| Effect::ReadOnly)
}

fn breaker<A>(layer: &BreakerLayer<A>) -> BreakerHandle {
    layer.registry().get(KeyRef::new("t")).expect("it was called")
}

#[derive(Debug)]
enum Shop {
    SoldOut,
    Asleep,
}

impl fmt::Display for Shop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Shop {}

/// projectbeskar/virtrigaud#70, joshrotenberg/tower-resilience#231: an open circuit is not tried again, and says when.
#[tokio::test(start_paused = true)]
async fn an_open_circuit_is_not_retried() {
    let calls = Arc::default();
    let layer = BreakerLayer::named("t").consecutive_failures(2).build().unwrap();
    let tool = ServiceBuilder::new()
        .layer(retry().attempts(6).build().unwrap())
        .layer(layer)
        .service(service(&calls, |_| Err(down())));
    let start = Instant::now();
    let error = tool.oneshot(1).await.unwrap_err();
    assert!(start.elapsed() < SECOND, "it does not wait for the circuit");
    assert_eq!(calls.load(Relaxed), 2);
    let open: &CircuitOpen = find(&*error).unwrap();
    assert!(open.retry_after().unwrap() > 29 * SECOND);
    assert!(causes(&*error).any(|cause| cause.to_string() == "503 Service Unavailable"));
}

/// resilience4j/resilience4j#544 and #2172, App-vNext/Polly#1979: a probe that is answered with "no" closes the circuit.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_answered_closes_the_circuit() {
    let calls = Arc::default();
    let layer = BreakerLayer::named("t")
        .consecutive_failures(2)
        .permanent_error(|it: &Shop| matches!(it, Shop::SoldOut))
        .build()
        .unwrap();
    let shop = service(&calls, |call| Err(if call < 2 { Shop::Asleep } else { Shop::SoldOut }));
    let tool = ServiceBuilder::new().layer(layer.clone()).service(shop);
    let ask = async || tool.clone().oneshot(1).await.unwrap_err();
    ask().await;
    ask().await;
    assert!(find::<CircuitOpen>(&*ask().await).is_some());
    advance(31 * SECOND).await;
    for _ in 0..20 {
        assert!(matches!(find(&*ask().await), Some(Shop::SoldOut)));
    }
    assert_eq!(breaker(&layer).state(), BreakerState::Closed);
}

/// msoedov/agentic_security#328: a failure while half open opens the circuit, whatever the minimum of calls.
#[tokio::test(start_paused = true)]
async fn a_failed_probe_opens_the_circuit() {
    let calls = Arc::default();
    let layer = BreakerLayer::named("t").consecutive_failures(None).min_calls(10).build().unwrap();
    let tool = ServiceBuilder::new().layer(layer.clone()).service(service(&calls, |_| Err(down())));
    for _ in 0..10 {
        let _ = tool.clone().oneshot(1).await;
    }
    assert_eq!(breaker(&layer).state(), BreakerState::Open);
    advance(31 * SECOND).await;
    assert_eq!(breaker(&layer).state(), BreakerState::HalfOpen);
    let _ = tool.oneshot(1).await;
    assert_eq!(breaker(&layer).state(), BreakerState::Open);
}

/// tsouza/cerberus#738: callers that go away open no circuit.
#[tokio::test(start_paused = true)]
async fn cancelled_calls_do_not_count() {
    let layer = BreakerLayer::named("t").build().unwrap();
    let tool = ServiceBuilder::new()
        .layer(layer.clone())
        .service(service_fn(|_: u32| std::future::pending::<Result<u32, BoxError>>()));
    for _ in 0..100 {
        assert!(tokio::time::timeout(SECOND, tool.clone().oneshot(1)).await.is_err());
    }
    assert_eq!(breaker(&layer).state(), BreakerState::Closed);
}

/// joshrotenberg/tower-resilience#381: an open circuit refuses although its service is not ready.
#[tokio::test(start_paused = true)]
async fn an_open_circuit_does_not_wait_for_readiness() {
    let layer = BreakerLayer::named("t").forced_open(true).build().unwrap();
    let busy = ServiceBuilder::new()
        .concurrency_limit(1)
        .service_fn(|_: u32| std::future::pending::<Result<u32, BoxError>>());
    let mut holds = busy.clone();
    let _held = holds.ready().await.unwrap().call(1);
    let refused = ServiceBuilder::new().layer(layer).service(busy).oneshot(2);
    let error = tokio::time::timeout(SECOND, refused).await.expect("at once").unwrap_err();
    assert!(find::<CircuitOpen>(&*error).is_some());
}

/// dbos-inc/dbos-transact-ts#1243, dbos-inc/dbos-transact-py#444: an error of one's own that is never tried again.
#[tokio::test(start_paused = true)]
async fn a_final_error_is_not_retried_and_opens_nothing() {
    let calls = Arc::default();
    let is_final = |it: &Shop| matches!(it, Shop::SoldOut);
    let layer = BreakerLayer::named("t").permanent_error(is_final).build().unwrap();
    let tool = ServiceBuilder::new()
        .layer(retry().permanent_error(is_final).build().unwrap())
        .layer(layer.clone())
        .service(service(&calls, |_| Err(Shop::SoldOut)));
    for asked in 1..=6 {
        assert!(tool.clone().oneshot(1).await.unwrap_err().is::<Shop>());
        assert_eq!(calls.load(Relaxed), asked);
    }
    assert_eq!(breaker(&layer).state(), BreakerState::Closed);
}

/// dbos-inc/dbos-transact-py#382: the last error says what each attempt failed with.
#[tokio::test(start_paused = true)]
async fn the_last_error_lists_the_attempts() {
    let calls = Arc::default();
    let codes = ["429 Too Many Requests", "503 Service Unavailable", "504 Gateway Timeout"];
    let tool = service(&calls, move |call| Err::<u32, BoxError>(codes[call as usize].into()));
    let tool = ServiceBuilder::new().layer(retry().attempts(3).build().unwrap()).service(tool);
    let error = tool.oneshot(1).await.unwrap_err();
    let retries: &RetryExhausted = find(&*error).unwrap();
    let reasons: Vec<&str> = retries.retried().iter().map(|retried| &*retried.reason).collect();
    assert_eq!(reasons.len(), 2, "{error}");
    assert!(reasons.iter().all(|reason| error.to_string().contains(reason)), "{error}");
    assert!(error.to_string().ends_with("504 Gateway Timeout"), "{error}");
}

/// vectordotdev/vector#26123, joshrotenberg/tower-resilience#362: a backoff holds no permit, and each attempt asks for
/// readiness again.
#[tokio::test(start_paused = true)]
async fn a_backoff_holds_no_permit() {
    let calls = Arc::default();
    let flaky = service(&calls, |call| if call == 0 { Err(down()) } else { Ok(7) });
    let tool = ServiceBuilder::new()
        .layer(retry().base(60 * SECOND).cap(None).max_elapsed(None).build().unwrap())
        .concurrency_limit(1)
        .service(flaky);
    let waits = tokio::spawn(tool.clone().oneshot(1));
    sleep(Duration::from_millis(1)).await;
    let other = tokio::time::timeout(Duration::from_millis(1), tool.oneshot(2)).await;
    assert_eq!(other.expect("the permit is free").unwrap(), 7);
    assert_eq!(waits.await.unwrap().unwrap(), 7);
}

/// dbos-inc/dbos-transact-py#667: there is no delay after the last attempt; agenda/agenda#1748: no delay is beyond the cap.
#[tokio::test(start_paused = true)]
async fn delays_end_with_the_attempts_and_stay_below_the_cap() {
    for seed in 0..50 {
        let stamps = Arc::new(Mutex::new(Vec::new()));
        let seen = stamps.clone();
        let tool = service(&Arc::default(), move |_| {
            seen.lock().unwrap().push(Instant::now());
            Err(down())
        });
        let layer = retry().attempts(8).base(SECOND).cap(4 * SECOND).seed(seed).build().unwrap();
        let _ = ServiceBuilder::new().layer(layer).service(tool).oneshot(1).await;
        let stamps = stamps.lock().unwrap();
        assert_eq!(stamps.last(), Some(&Instant::now()));
        assert!(stamps.windows(2).all(|two| two[1] - two[0] <= 4 * SECOND), "{stamps:?}");
    }
}

/// Xuanwo/backon#184: the jitter is as wide as the delay that it is drawn from.
#[tokio::test(start_paused = true)]
async fn jitter_is_as_wide_as_the_delay() {
    let mut delays = Vec::new();
    for seed in 0..100 {
        let layer = retry().attempts(2).base(4 * SECOND).seed(seed).build().unwrap();
        let tool = service(&Arc::default(), |_| Err(down()));
        let start = Instant::now();
        let _ = ServiceBuilder::new().layer(layer).service(tool).oneshot(1).await;
        delays.push(start.elapsed());
    }
    delays.sort_unstable();
    assert!(delays[5] < SECOND && delays[95] > 3 * SECOND, "{delays:?}");
}

/// App-vNext/Polly#2160: what the server asks for is waited for.
#[tokio::test(start_paused = true)]
async fn what_the_server_asks_for_is_waited_for() {
    let tool = ServiceBuilder::new().layer(RetryLayer::default()).service_fn(
        |request: http::Request<String>| async move {
            let again = request.headers().contains_key("x-retry-attempt");
            let response = http::Response::builder().status(if again { 200 } else { 503 });
            Ok::<_, BoxError>(response.header("retry-after", "5").body(String::new())?)
        },
    );
    let start = Instant::now();
    assert_eq!(tool.oneshot(http::Request::new(String::new())).await.unwrap().status(), 200);
    assert!(start.elapsed() >= 5 * SECOND);
}

fn pay(key: &str, cents: u32) -> ToolCall {
    let params = Params::from_text(format!(r#"{{"cents":{cents}}}"#)).unwrap();
    ToolCall::new("pay", params).effect(Effect::Mutating).session("s").idempotency_key(key)
}

fn code(end: Result<ToolOutcome, BoxError>) -> (String, Ran) {
    let error = end.unwrap_err();
    (failure_info(&*error).unwrap().code().to_owned(), ran(&*error))
}

/// aws-powertools/powertools-lambda-python#8049: a run that took too long is not repeated by its key;
/// aws-powertools/powertools-lambda-typescript#2058, aws-powertools/powertools-lambda-java#2260: other params under a key
/// in flight are refused.
#[tokio::test(start_paused = true)]
async fn a_payment_that_took_too_long_is_not_repeated() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let tool = ServiceBuilder::new()
        .layer(IdempotencyLayer::default())
        .layer(DeadlineLayer::builder().per_call(20 * SECOND).build().unwrap())
        .layer(AttemptTimeoutLayer::builder().after(SECOND).build().unwrap())
        .service_fn(|_: ToolCall| {
            RUNS.fetch_add(1, Relaxed);
            std::future::pending::<Result<ToolOutcome, BoxError>>()
        });
    let first = tokio::spawn(tool.clone().oneshot(pay("k", 1)));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(
        code(tool.clone().oneshot(pay("k", 2)).await),
        ("idempotency_conflict".into(), Ran::No)
    );
    assert_eq!(code(first.await.unwrap()), ("timeout".into(), Ran::Unknown));
    let (again, ran) = code(tool.oneshot(pay("k", 1)).await);
    assert_eq!((&*again, ran), ("outcome_unknown", Ran::Unknown));
    assert_eq!(RUNS.load(Relaxed), 1);
}
