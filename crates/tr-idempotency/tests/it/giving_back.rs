//! Claims that are given back in the background: a bounded number, and none in silence.
use crate::{
    faults::{Fault, Faulty},
    support::*,
};
use std::time::Duration;
use tr_idempotency::{
    IdempotencyLayer,
    store::{Memory, Query, RecordStore as _, StateFilter},
};

/// Claims that are given back at once, and calls that are refused at once.
const AT_ONCE: usize = 1_024;
const CALLS: usize = 3_000;

#[tokio::test(start_paused = true)]
async fn claims_in_doubt_are_given_back_a_bounded_number_at_a_time_and_the_rest_is_counted() {
    let records = Memory::new();
    let faulty = Faulty::new(records.clone());
    let layer = IdempotencyLayer::builder().store(faulty.clone()).build().unwrap();
    let (service, front, asked) = guarded_by(&layer, counting(SECOND));
    let stored = front.in_store().unwrap();
    // Every claim is granted and every reply is lost; then the store is silent for two seconds.
    faulty.fail("claim", Fault::ReplyLost, usize::MAX);
    faulty.fail("release", Fault::Silent, AT_ONCE);
    let calls: Vec<_> = (0..CALLS)
        .map(|n| tokio::spawn(tower::ServiceExt::oneshot(service.clone(), pay(&n.to_string()))))
        .collect();
    for refused in calls {
        assert_eq!(refusal(refused.await.unwrap()).0, "store_unavailable");
    }
    pass(Duration::from_millis(1)).await;
    assert_eq!(faulty.calls("release"), AT_ONCE, "at once");
    assert_eq!(stored.left_to_leases(), (CALLS - AT_ONCE) as u64);

    // Those that had their place are given back once the store answers.
    pass(5 * SECOND).await;
    assert_eq!(faulty.calls("release"), 2 * AT_ONCE);
    let open = Query { state: StateFilter::Inflight { at_least: 0 }, ..Query::ALL };
    assert_eq!(records.count(&open).await.unwrap(), stored.left_to_leases());
    // The rest bars its mutating calls, and bars them visibly.
    pass(2 * MINUTE).await;
    assert_eq!(stored.unknown(CALLS).await.unwrap().records.len() as u64, stored.left_to_leases());
    assert_eq!(asked.calls(), 0);

    // And there are places again.
    faulty.fail("claim", Fault::ReplyLost, 3);
    assert_eq!(refusal(call(&service, pay("later")).await).0, "store_unavailable");
    pass(SECOND).await;
    assert_eq!(records.read(&key_of(&pay("later"))).await.unwrap(), None);
    assert_eq!(stored.left_to_leases(), (CALLS - AT_ONCE) as u64);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_could_not_be_given_back_is_counted() {
    let faulty = Faulty::new(Memory::new());
    let layer = IdempotencyLayer::builder().store(faulty.clone()).build().unwrap();
    let (service, front, _) = guarded_by(&layer, counting(SECOND));
    let stored = front.in_store().unwrap();
    for (fault, times) in [(Fault::Unreachable, 3), (Fault::Silent, 3), (Fault::Unreadable, 1)] {
        let (before, asked) = (stored.left_to_leases(), faulty.calls("release"));
        faulty.fail("claim", Fault::ReplyLost, 3);
        faulty.fail("release", fault, usize::MAX);
        assert_eq!(
            refusal(call(&service, pay(&format!("{fault:?}"))).await).0,
            "store_unavailable"
        );
        pass(MINUTE).await;
        assert_eq!(stored.left_to_leases(), before + 1, "{fault:?}");
        assert_eq!(faulty.calls("release"), asked + times, "{fault:?}");
    }
}
