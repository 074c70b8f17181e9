//! Callers of one call with different luck: a store that goes silent, a deadline that is near.
use crate::{
    faults::{Fault, Faulty},
    support::*,
};
use std::time::Duration;
use tr_core::{Effect, Ran, Verdict, causes};
use tr_idempotency::{
    Counts, IdempotencyLayer,
    store::{Memory, Query, RecordStore, WhenStoreFails},
};

/// The store said that another process runs the call, and then said nothing more: whether it ran
/// is that other process's to say.
#[tokio::test(start_paused = true)]
async fn a_store_lost_while_another_process_runs_the_call_says_that_it_may_have_run() {
    for policy in [WhenStoreFails::Refuse, WhenStoreFails::Run] {
        let records = Memory::new();
        let layer = IdempotencyLayer::builder().store(records.clone()).build().unwrap();
        let (service, ..) = guarded_by(&layer, counting(10 * MINUTE));
        let _first = start(&service, pay("k")).await;
        let faulty = Faulty::new(records);
        let layer = IdempotencyLayer::builder()
            .store(faulty.clone())
            .when_store_fails(Effect::Mutating, policy)
            .max_wait(HOUR)
            .build()
            .unwrap();
        let (other, _, ran_other) = guarded_by(&layer, counting(SECOND));
        let second = start(&other, pay("k")).await;
        faulty.down();
        let told_second = second.await.unwrap();
        assert_eq!(
            refusal(told_second),
            told("store_unavailable", Ran::Unknown, Verdict::TRANSIENT)
        );
        assert_eq!(ran_other.calls(), 0);
    }
}

/// One caller's deadline is not the others'.
#[tokio::test(start_paused = true)]
async fn a_caller_without_time_to_ask_leaves_that_to_those_who_have() {
    let faulty = Faulty::new(Memory::new());
    let layer = IdempotencyLayer::builder().store(faulty.clone()).build().unwrap();
    let (service, _, asked) = guarded_by(&layer, counting(SECOND));
    faulty.fail("claim", Fault::Silent, 1);
    let soon = tokio::time::Instant::now() + Duration::from_millis(100);
    let first = start(&service, pay("k").deadline(soon.into_std())).await;
    let second = start(&service, pay("k")).await;
    assert_eq!(refusal(first.await.unwrap()).1, Ran::No);
    assert_eq!(answer(second.await.unwrap()), 0);
    assert_eq!(asked.calls(), 1);
}

/// Each reply comes 2 ms after the question. What enforces deadlines is a layer inside of this one.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_is_not_the_stores_failure() {
    let layer = IdempotencyLayer::builder().store(Faulty::slow(Memory::new())).build().unwrap();
    let (service, _, asked) = guarded_by(&layer, counting(SECOND));
    let now = tokio::time::Instant::now();
    for deadline in [now, now + Duration::from_millis(1)] {
        let late = || pay("k").deadline(deadline.into_std());
        assert_eq!(answer(call(&service, late()).await), 0, "run, or replayed");
    }
    assert_eq!(asked.calls(), 1);
}

/// Each reply comes 2 ms after the question, when the lease is over again.
#[tokio::test(start_paused = true)]
async fn a_lease_shorter_than_the_way_to_the_store_is_refused() {
    let records = Memory::new();
    let builder = IdempotencyLayer::builder().store(Faulty::slow(records.clone()));
    let layer = builder.inflight_ttl(Duration::from_millis(1)).build().unwrap();
    let (service, front, asked) = guarded_by(&layer, counting(SECOND));
    let told_both = [start(&service, pay("k")).await, start(&service, pay("k")).await];
    for end in told_both {
        let end = tokio::time::timeout(MINUTE, end).await.expect("it does not renew for ever");
        let error = end.unwrap().unwrap_err();
        assert!(causes(&*error).any(|it| it.to_string().contains("inflight_ttl")), "{error:?}");
        let unavailable = told("store_unavailable", Ran::No, Verdict::TRANSIENT);
        assert_eq!(refusal(Err(error)), unavailable);
    }
    // A read runs, and nothing is left of the claims.
    assert_eq!(answer(call(&service, read(pay("r"))).await), 0);
    pass(SECOND).await;
    assert_eq!((asked.calls(), front.counts()), (1, Counts::default()));
    assert_eq!(records.count(&Query::ALL).await.unwrap(), 0);
}
