//! A bound on calls in flight: at it the service is not ready.
use crate::support::*;
use tower::{ServiceExt, load_shed::LoadShed};
use tower_service::Service;
use tr_core::ToolOutcome;
use tr_idempotency::{IdempotencyLayer, store::Memory};

fn bounded(calls: usize) -> (Guarded, Asked) {
    let layer = IdempotencyLayer::builder().max_in_flight(calls).build().unwrap();
    let (service, _, asked) = guarded_by(&layer, counting(SECOND));
    (service, asked)
}

/// A layer outside sheds what there is no place for, at once.
#[tokio::test(start_paused = true)]
async fn at_the_bound_load_shed_sheds_and_below_it_calls_run() {
    let (service, asked) = bounded(2);
    let running = [start(&service, pay("a")).await, start(&service, pay("b")).await];
    let mut shed = LoadShed::new(service.clone());
    let error = shed.ready().await.unwrap().call(pay("c")).await.unwrap_err();
    assert!(error.is::<tower::load_shed::error::Overloaded>(), "{error}");
    for task in running {
        answer(task.await.unwrap());
    }
    // Each of these waits for a place that one before it had.
    for key in ["d", "e", "a", "f"] {
        answer(shed.ready().await.unwrap().call(pay(key)).await);
    }
    assert_eq!(asked.calls(), 5, "`a` is replayed");
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_waits_has_a_place_and_one_who_waits_gets_it_next() {
    let (service, asked) = bounded(2);
    let first = start(&service, pay("a")).await;
    let repeat = start(&service, pay("a")).await;
    let third = start(&service, pay("b")).await;
    assert_eq!(asked.calls(), 1, "there is no place for the third");
    assert_eq!(answer(first.await.unwrap()), answer(repeat.await.unwrap()));
    answer(third.await.unwrap());
    assert_eq!(asked.calls(), 2);
}

/// The tool still runs, so its place is not free.
#[tokio::test(start_paused = true)]
async fn a_call_without_its_caller_keeps_its_place_until_it_ends() {
    for in_store in [false, true] {
        let layer = IdempotencyLayer::builder().max_in_flight(1);
        let layer = if in_store { layer.store(Memory::default()) } else { layer };
        let (mut service, _, asked) = guarded_by(&layer.build().unwrap(), counting(SECOND));
        let cut = start(&service, pay("a")).await;
        cut.abort();
        settle().await;
        assert_eq!(asked.calls(), 1);
        let ready = service.ready();
        assert!(tokio::time::timeout(SECOND / 2, ready).await.is_err(), "{in_store}");
        pass(SECOND).await;
        let end: ToolOutcome = service.ready().await.unwrap().call(pay("a")).await.unwrap();
        assert_eq!(answer(Ok(end)), 0, "{in_store}: it is replayed");
    }
}

/// A clone has no place that its original took, and a place that is not used is given back.
#[tokio::test(start_paused = true)]
async fn a_place_is_one_calls() {
    let (mut service, _) = bounded(1);
    service.ready().await.unwrap();
    let mut clone = service.clone();
    assert!(tokio::time::timeout(SECOND, clone.ready()).await.is_err());
    drop(service);
    answer(clone.ready().await.unwrap().call(pay("a")).await);
}

#[test]
fn no_place_at_all_is_refused() {
    let error = IdempotencyLayer::builder().max_in_flight(0).build().unwrap_err();
    assert!(error.to_string().contains("`max_in_flight` is 0"), "{error}");
}
