//! The paths that allocate nothing.
use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};
use tower::{Service, service_fn};
use tower_layer::Layer;
use tr_core::{
    BoxError, DedupeKey, Params, ToolCall, ToolOutcome,
    canonical::{Digest, Key},
};
use tr_idempotency::{Idempotency, IdempotencyLayer};
use tr_testkit::alloc;

type Inner = fn(ToolCall) -> Ready<Result<ToolOutcome, Infallible>>;

fn tool(_: ToolCall) -> Ready<Result<ToolOutcome, Infallible>> {
    ready(Ok(ToolOutcome::default()))
}

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::builder().capacity(64).build().unwrap()
}

fn calls(from: usize) -> Vec<ToolCall> {
    let call = |n: usize| {
        ToolCall::new("pay", Params::from_text(r#"{"amount":5}"#).unwrap())
            .session("s-1")
            .request_id("r-1")
            .idempotency_key(format!("k{n:06}"))
    };
    (from..from + 2_000).map(call).collect()
}

fn run<S>(service: &S, call: ToolCall) -> ToolOutcome
where
    S: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone,
{
    let future = pin!(service.clone().call(call));
    let Poll::Ready(end) = future.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the tool answers at once");
    };
    end.unwrap()
}

#[test]
fn a_replay_allocates_nothing() {
    let service = layer().layer(service_fn(tool as Inner));
    let calls = calls(0);
    assert!(!run(&service, calls[0].clone()).from_cache());
    assert!(run(&service, calls[0].clone()).from_cache());
    for _ in 0..100 {
        let call = calls[0].clone();
        assert_eq!(alloc::count(|| run(&service, call)).count, 0);
    }
}

#[test]
fn a_first_call_allocates_nothing_once_warm() {
    let service = layer().layer(service_fn(tool as Inner));
    let clones: [Idempotency<_>; 2] = [service.clone(), service];
    for call in calls(0) {
        run(&clones[0], call);
    }
    for (n, call) in calls(2_000).into_iter().enumerate() {
        let made = alloc::count(|| assert!(!run(&clones[n % 2], call).from_cache()));
        assert_eq!(made.count, 0, "call {n}");
    }
}

/// Records come and go in each of many tables: none of them grows for that.
#[test]
fn first_calls_with_scattered_keys_allocate_nothing_once_warm() {
    const RECORDS: usize = 2_000;
    let layer = IdempotencyLayer::builder().capacity(RECORDS).build().unwrap();
    let service = layer.layer(service_fn(tool as Inner));
    let mut call = ToolCall::new("pay", Params::empty_object()).session("s-1");
    let mut next = |n: usize| {
        let bytes = *Digest::of_bytes(n.to_string()).as_bytes();
        call.parts_mut().idempotency.id =
            Some(DedupeKey { key: Key::from_bytes(bytes), digest: Digest::from_bytes(bytes) });
        call.clone()
    };
    for n in 0..5 * RECORDS {
        run(&service, next(n));
    }
    for n in 5 * RECORDS..20 * RECORDS {
        let call = next(n);
        let made = alloc::count(|| assert!(!run(&service, call).from_cache()));
        assert_eq!(made.count, 0, "call {n}");
    }
}
