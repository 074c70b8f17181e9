//! One's own error is found inside the errors of the layers, and of any error it can be said whether the tool ran.
use std::{
    fmt,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tool_reliability::{
    BoxError, Effect, Params, Ran, ToolCall, ToolOutcome,
    breaker::BreakerLayer,
    core::NotSent,
    idempotency::IdempotencyLayer,
    loopguard::LoopGuardLayer,
    retry::RetryLayer,
    timeout::{AttemptTimeoutLayer, DeadlineLayer},
};
use tower::{ServiceBuilder, ServiceExt as _, service_fn};
use tr_core::{find, ran};

#[derive(Clone, Debug, PartialEq)]
struct OutOfPaper {
    printer: u32,
}

impl fmt::Display for OutOfPaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "printer {} is out of paper", self.printer)
    }
}

impl std::error::Error for OutOfPaper {}

fn call() -> ToolCall {
    ToolCall::new("print", Params::empty_object()).effect(Effect::ReadOnly).session("s")
}

#[tokio::test(start_paused = true)]
async fn ones_own_error_is_found_behind_every_layer() {
    let tool = service_fn(|_: ToolCall| async { Err::<ToolOutcome, _>(OutOfPaper { printer: 7 }) });
    let layers = ServiceBuilder::new()
        .layer(LoopGuardLayer::default())
        .layer(IdempotencyLayer::default())
        .layer(DeadlineLayer::new())
        .layer(RetryLayer::default())
        .layer(BreakerLayer::builder().consecutive_failures(100).build().unwrap())
        .layer(AttemptTimeoutLayer::default())
        .service(tool);
    let keyed = call().idempotency_key("k");
    let both = tokio::join!(layers.clone().oneshot(keyed.clone()), layers.oneshot(keyed));
    for error in [both.0.unwrap_err(), both.1.unwrap_err()] {
        assert_eq!(find(&*error), Some(&OutOfPaper { printer: 7 }), "{error:?}");
        assert_eq!(ran(&*error), Ran::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_found_in_a_replay_from_memory_and_behind_an_open_breaker() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let tool = service_fn(|_: ToolCall| async {
        let printer = CALLS.fetch_add(1, Relaxed);
        Err::<ToolOutcome, _>(OutOfPaper { printer })
    });
    let records = ServiceBuilder::new().layer(IdempotencyLayer::default()).service(tool);
    for _ in 0..2 {
        let error = records.clone().oneshot(call().idempotency_key("k")).await.unwrap_err();
        assert_eq!(find(&*error), Some(&OutOfPaper { printer: 0 }), "{error:?}");
    }

    let breaker = ServiceBuilder::new()
        .layer(RetryLayer::default())
        .layer(BreakerLayer::builder().consecutive_failures(1).build().unwrap())
        .service(tool);
    let error = breaker.oneshot(call()).await.unwrap_err();
    assert_eq!(find(&*error), Some(&OutOfPaper { printer: 1 }), "{error:?}");
    assert_eq!(ran(&*error), Ran::Unknown, "the first attempt may have run");
}

#[tokio::test(start_paused = true)]
async fn whether_the_tool_ran_is_known_of_every_error() {
    let refused: BoxError = NotSent::new(OutOfPaper { printer: 1 }).into();
    assert_eq!((ran(&*refused), find(&*refused)), (Ran::No, Some(&OutOfPaper { printer: 1 })));
    let untouched: BoxError = OutOfPaper { printer: 1 }.into();
    assert_eq!(
        (ran(&*untouched), find(&*untouched)),
        (Ran::Unknown, Some(&OutOfPaper { printer: 1 }))
    );

    let hangs = ServiceBuilder::new()
        .layer(AttemptTimeoutLayer::builder().after(Duration::from_secs(1)).build().unwrap())
        .service_fn(|_: ToolCall| std::future::pending::<Result<ToolOutcome, BoxError>>());
    assert_eq!(ran(&*hangs.oneshot(call()).await.unwrap_err()), Ran::Unknown);
}
