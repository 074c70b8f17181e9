//! Answers that come after their calls were given up, in a store.
use crate::support::*;
use tr_core::{Ran, ToolOutcome, Verdict};
use tr_idempotency::{
    IdempotencyLayer, LateEnd, RecordState, Resolution, StoreHandle, store::Memory,
};
use tr_testkit::tool::{Scripted, Step};

/// A payment that timed out, and the epoch of its run. A repeat pays, and answers with 1.
async fn given_up() -> (Guarded, StoreHandle<ToolOutcome>, Asked, u64) {
    let layer = IdempotencyLayer::builder().store(Memory::new()).build().unwrap();
    let tool = Scripted::by(|n, _| match n {
        0 => fails("timeout", Ran::Unknown, Verdict::TRANSIENT),
        n => Step::after(SECOND, Step::Ok(number(n))),
    });
    let (service, front, asked) = guarded_by(&layer, tool);
    assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
    let store = front.in_store().unwrap();
    let epoch = store.record(&key_of(&pay("k"))).await.unwrap().unwrap().epoch;
    (service, store, asked, epoch)
}

async fn by_hand(store: &StoreHandle<ToolOutcome>, how: Resolution<ToolOutcome>) {
    store.settle_by(&key_of(&pay("k")), None, how, None).await.unwrap().unwrap();
}

async fn late(store: &StoreHandle<ToolOutcome>, epoch: u64) -> LateEnd {
    store.settle_late(&key_of(&pay("k")), epoch, Resolution::Done(number(7))).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_settles_what_is_unknown() {
    let (service, store, asked, epoch) = given_up().await;
    assert_eq!(late(&store, epoch).await, LateEnd::Recorded);
    assert_eq!(late(&store, epoch).await, LateEnd::Settled);
    assert_eq!((answer(call(&service, pay("k")).await), asked.calls()), (7, 1));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_replaces_that_the_call_did_not_run() {
    for waits in [SECOND, HOUR] {
        let (service, store, asked, epoch) = given_up().await;
        by_hand(&store, Resolution::DidNotRun).await;
        pass(waits).await;
        assert_eq!(late(&store, epoch).await, LateEnd::Corrected);
        assert_eq!(late(&store, epoch).await, LateEnd::ClaimedAgain, "its own claim is a new one");
        assert_eq!((answer(call(&service, pay("k")).await), asked.calls()), (7, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_changes_nothing_of_a_call_that_was_claimed_again() {
    let (service, store, asked, epoch) = given_up().await;
    by_hand(&store, Resolution::DidNotRun).await;
    let again = start(&service, pay("k")).await;
    assert_eq!(late(&store, epoch).await, LateEnd::ClaimedAgain, "it runs");
    assert_eq!(answer(again.await.unwrap()), 1);
    assert_eq!(late(&store, epoch).await, LateEnd::ClaimedAgain, "it has run");
    assert_eq!((answer(call(&service, pay("k")).await), asked.calls()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_leaves_what_agrees_with_it() {
    let (_, store, _, epoch) = given_up().await;
    let key = key_of(&pay("k"));
    by_hand(&store, Resolution::DidNotRun).await;
    let not_run = store.settle_late(&key, epoch, Resolution::DidNotRun).await.unwrap();
    assert_eq!(not_run, LateEnd::Settled);
    assert_eq!(store.record(&key).await.unwrap().unwrap().state, RecordState::Cancelled);

    let (service, store, _, epoch) = given_up().await;
    by_hand(&store, Resolution::Done(number(9))).await;
    assert_eq!(late(&store, epoch).await, LateEnd::Settled);
    assert_eq!(answer(call(&service, pay("k")).await), 9);
    assert!(store.clear(&key).await.unwrap());
    assert_eq!(late(&store, epoch).await, LateEnd::Settled);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_waits_until_the_run_is_given_up() {
    let layer = IdempotencyLayer::builder().store(Memory::new()).build().unwrap();
    let (service, front, _) = guarded_by(&layer, counting(MINUTE));
    let store = front.in_store().unwrap();
    let running = start(&service, pay("k")).await;
    let epoch = store.record(&key_of(&pay("k"))).await.unwrap().unwrap().epoch;
    assert_eq!(late(&store, epoch).await, LateEnd::InFlight);
    assert_eq!(answer(running.await.unwrap()), 0);
    assert_eq!(late(&store, epoch).await, LateEnd::Settled);
}
