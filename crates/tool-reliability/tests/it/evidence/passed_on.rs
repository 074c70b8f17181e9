//! A tool acts, then calls a service of its own that stands behind layers of ours, and passes on
//! what that one is refused with.
use super::{PaymentFailed, unhindered};
use std::{
    future::{pending, ready},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tool_reliability::{ToolStack, adapter::AdapterLayer};
use tower::{
    ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer, service_fn, util::BoxCloneSyncService,
};
use tr_breaker::BreakerLayer;
use tr_core::{
    BoxError, DedupeMode, NotSent, Params, Ran, ToolCall, ToolError, ToolOutcome, classify,
    failure_info,
};
use tr_idempotency::IdempotencyLayer;
use tr_loopguard::LoopGuardLayer;
use tr_retry::RetryLayer;
use tr_timeout::{AttemptTimeoutLayer, DeadlineLayer};

type Mail = BoxCloneSyncService<ToolCall, ToolOutcome, BoxError>;
type Refused = fn() -> Fails;
type Fails = Pin<Box<dyn Future<Output = BoxError> + Send>>;

fn mail() -> ToolCall {
    ToolCall::new("mail", Params::empty_object()).session("s").turn("t")
}

fn boxed<S>(service: S) -> Mail
where
    S: tower::Service<ToolCall, Response = ToolOutcome, Error = BoxError>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    BoxCloneSyncService::new(service)
}

/// Never sent, so that every layer around it says that nothing ran.
fn unsent(_: ToolCall) -> std::future::Ready<Result<ToolOutcome, BoxError>> {
    ready(Err(NotSent::new("connect ECONNREFUSED").into()))
}

fn hangs(_: ToolCall) -> std::future::Pending<Result<ToolOutcome, BoxError>> {
    pending()
}

/// How the mail ends that is sent like this.
async fn failure(service: Mail, call: ToolCall) -> BoxError {
    service.oneshot(call).await.expect_err("it is refused")
}

async fn breaker_open() -> BoxError {
    let layer = BreakerLayer::builder().forced_open(true).build().unwrap();
    failure(boxed(ServiceBuilder::new().layer(layer).service(service_fn(unsent))), mail()).await
}

async fn load_shed() -> BoxError {
    let busy = ServiceBuilder::new()
        .load_shed()
        .layer(ConcurrencyLimitLayer::new(0))
        .service(service_fn(unsent));
    failure(boxed(busy), mail()).await
}

async fn never_ready() -> BoxError {
    let busy = ServiceBuilder::new()
        .layer(AttemptTimeoutLayer::default())
        .layer(ConcurrencyLimitLayer::new(0))
        .service(service_fn(unsent));
    failure(boxed(busy), mail()).await
}

async fn too_late() -> BoxError {
    let layer = DeadlineLayer::builder().build().unwrap();
    let late = mail().deadline(tokio::time::Instant::now().into_std());
    failure(boxed(ServiceBuilder::new().layer(layer).service(service_fn(unsent))), late).await
}

async fn looping() -> BoxError {
    let guarded = ServiceBuilder::new()
        .layer(LoopGuardLayer::default())
        .service(service_fn(|_: ToolCall| ready(Err(BoxError::from("no such mailbox")))));
    let guarded = boxed(guarded);
    for _ in 0..2 {
        let _ = failure(guarded.clone(), mail()).await;
    }
    failure(guarded, mail()).await
}

async fn in_flight() -> BoxError {
    let once =
        boxed(ServiceBuilder::new().layer(IdempotencyLayer::default()).service(service_fn(hangs)));
    let keyed = || mail().idempotency_key("receipt");
    tokio::spawn(once.clone().oneshot(keyed()));
    tokio::task::yield_now().await;
    failure(once, keyed().dedupe(DedupeMode::BestEffort)).await
}

async fn conflicting() -> BoxError {
    let once =
        boxed(ServiceBuilder::new().layer(IdempotencyLayer::default()).service(service_fn(hangs)));
    tokio::spawn(once.clone().oneshot(mail().idempotency_key("receipt")));
    tokio::task::yield_now().await;
    let other = ToolCall::new("mail", Params::from_text(r#"{"to": "b"}"#).unwrap());
    failure(once, other.session("s").idempotency_key("receipt")).await
}

async fn retries_exhausted() -> BoxError {
    let retrying = ServiceBuilder::new().layer(RetryLayer::default()).service(service_fn(unsent));
    failure(boxed(retrying), mail()).await
}

async fn whole_stack() -> BoxError {
    failure(boxed(ToolStack::default().service(service_fn(unsent))), mail()).await
}

/// A replay of what a key of the mail's own was refused with.
async fn replayed() -> BoxError {
    let once = boxed(
        ServiceBuilder::new()
            .layer(IdempotencyLayer::default())
            .layer(AdapterLayer::new())
            .service(service_fn(|_: ToolCall| ready(Err(BoxError::from("no such mailbox"))))),
    );
    let keyed = || mail().idempotency_key("receipt");
    let _ = failure(once.clone(), keyed()).await;
    failure(once, keyed()).await
}

fn all() -> [(&'static str, Refused); 10] {
    [
        ("breaker open", || Box::pin(breaker_open())),
        ("load shed", || Box::pin(load_shed())),
        ("never ready", || Box::pin(never_ready())),
        ("too late", || Box::pin(too_late())),
        ("looping", || Box::pin(looping())),
        ("in flight", || Box::pin(in_flight())),
        ("conflicting", || Box::pin(conflicting())),
        ("retries exhausted", || Box::pin(retries_exhausted())),
        ("whole stack", || Box::pin(whole_stack())),
        ("replayed", || Box::pin(replayed())),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_the_tools_own_service_was_refused_never_makes_it_run_again() {
    for normalise in [true, false] {
        for (name, refused) in all() {
            let alone = refused().await;
            let said = classify::error(&*alone).end.ran;
            assert!(
                said == Ran::No || ["in flight", "replayed"].contains(&name),
                "{name}: {said:?}"
            );
            for inside in [false, true] {
                let runs = Arc::new(AtomicUsize::new(0));
                let counted = runs.clone();
                let stack = unhindered(|stack| stack.normalise(normalise));
                let pay = stack.service(service_fn(move |_: ToolCall| {
                    counted.fetch_add(1, Relaxed);
                    async move {
                        let error = refused().await;
                        let error = if inside { PaymentFailed(error).into() } else { error };
                        Err::<ToolOutcome, BoxError>(error)
                    }
                }));
                let call = || ToolCall::new("pay", Params::empty_object()).session("s");
                let keyed = || call().idempotency_key("k");
                let ends = [keyed(), keyed(), keyed().dedupe(DedupeMode::BestEffort)];
                for (n, call) in ends.into_iter().enumerate() {
                    let end = pay.clone().oneshot(call).await.expect_err("it fails");
                    // Without words of ours it is the tool's own error, to the caller.
                    if normalise {
                        let facts = failure_info(&*end).expect("all of ours have facts");
                        assert!(n > 0 || facts.replay().is_none(), "{name}: {end}");
                        assert_ne!(facts.ran(), Ran::No, "{name}: {end}");
                    }
                }
                assert_eq!(runs.load(Relaxed), 1, "{name}, inside: {inside}");
                pay.oneshot(call()).await.expect_err("it fails");
                assert_eq!(runs.load(Relaxed), 2, "{name}, without a key, inside: {inside}");
            }
        }
    }
}

/// What the tool says itself is believed, also where it says so of an error of ours.
#[tokio::test(start_paused = true)]
async fn a_tool_may_say_itself_that_it_did_not_run() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let pay = unhindered(|stack| stack).service(service_fn(move |_: ToolCall| {
        let n = counted.fetch_add(1, Relaxed);
        async move {
            let mut locked = ToolError::new("locked", "the ledger is locked");
            (locked.retryable, locked.ran) = (Some(true), Ran::No);
            match n {
                0 => Err(BoxError::from(NotSent::new(load_shed().await))),
                1 => Err(BoxError::from(locked)),
                _ => Ok(ToolOutcome::default()),
            }
        }
    }));
    let call = ToolCall::new("pay", Params::empty_object()).session("s").idempotency_key("k");
    pay.oneshot(call).await.unwrap();
    assert_eq!(runs.load(Relaxed), 3);
}

/// A limit below the stack is asked for this very call only where somebody says so.
#[tokio::test(start_paused = true)]
async fn a_layer_below_the_stack_says_that_nothing_was_sent_by_a_wrapper() {
    let shed = |error: BoxError| match error.downcast::<tower::load_shed::error::Overloaded>() {
        Ok(shed) => BoxError::from(NotSent::new(shed)),
        Err(error) => error,
    };
    let busy = ServiceBuilder::new()
        .map_err(shed)
        .load_shed()
        .layer(ConcurrencyLimitLayer::new(0))
        .service(service_fn(unsent));
    let end = unhindered(|stack| stack).service(busy).oneshot(mail()).await.unwrap_err();
    assert_eq!(failure_info(&*end).unwrap().ran(), Ran::No);
}
