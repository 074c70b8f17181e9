//! Many callers of one call.
use crate::support::*;
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};
use tokio::time::Instant;
use tower::ServiceExt;
use tr_core::{BoxError, Ran, ToolCall, ToolOutcome, Verdict};
use tr_idempotency::{Counts, IdempotencyLayer, store::Memory};
use tr_testkit::{
    rounds,
    tool::{Scripted, Step},
};

/// TR's cache ran all eight.
#[tokio::test(start_paused = true)]
async fn eight_concurrent_misses_are_one_run() {
    let (service, _, asked) = guarded(counting(SECOND));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        tasks.push(start(&service, pay("k")).await);
    }
    for task in tasks {
        assert_eq!(answer(task.await.unwrap()), 0);
    }
    assert_eq!(asked.calls(), 1);
}

/// Powertools gave 49 of them an error.
#[test]
fn fifty_concurrent_callers_get_no_error() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for round in 0..20 {
            let (service, records, asked) = guarded(counting(Duration::from_millis(1)));
            let calls = (0..50).map(|_| tokio::spawn(service.clone().oneshot(pay("k"))));
            for task in calls.collect::<Vec<_>>() {
                assert_eq!(answer(task.await.unwrap()), 0, "round {round}");
            }
            assert_eq!((asked.calls(), records.counts().waiters), (1, 0));
        }
    });
}

/// moka ran it 202 times.
#[tokio::test(start_paused = true)]
async fn a_panicking_call_with_300_callers_runs_once() {
    let tool: Tool = Scripted::script([Step::after(SECOND, Step::Panic)]);
    let (service, records, asked) = guarded(tool);
    let mut tasks = Vec::new();
    for _ in 0..300 {
        tasks.push(start(&service, pay("k")).await);
    }
    assert!(tasks.remove(0).await.unwrap_err().is_panic());
    for task in tasks {
        let unknown = told("outcome_unknown", Ran::Unknown, Verdict::Permanent);
        assert_eq!(refusal(task.await.unwrap()), unknown);
    }
    assert_eq!((asked.calls(), records.unknown().len()), (1, 1));
}

/// Go's singleflight and TR's coalesce fail everybody.
#[tokio::test(start_paused = true)]
async fn a_cancelled_leader_does_not_fail_its_waiters() {
    let (service, _, asked) = guarded(counting(SECOND));
    let leader = start(&service, pay("k")).await;
    let waiters = [start(&service, pay("k")).await, start(&service, pay("k")).await];
    leader.abort();
    assert!(leader.await.unwrap_err().is_cancelled());
    for waiter in waiters {
        assert_eq!(answer(waiter.await.unwrap()), 0);
    }
    assert_eq!((asked.calls(), asked.cancelled()), (1, 0));
}

/// TR's coalesce polled 965,440 times in 300 ms.
#[tokio::test(start_paused = true)]
async fn a_waiter_is_polled_to_register_and_to_be_served() {
    let (service, _, _) = guarded(counting(20 * SECOND));
    let leader = start(&service, pay("k")).await;
    let mut waiter = Box::pin(service.clone().oneshot(pay("k")));
    let mut polls = 0;
    let end = std::future::poll_fn(|cx| {
        polls += 1;
        waiter.as_mut().poll(cx)
    });
    assert_eq!(answer(end.await), 0);
    assert_eq!(polls, 2);
    assert_eq!(answer(leader.await.unwrap()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_waits_no_longer_than_its_own_deadline() {
    let (service, records, asked) = guarded(counting(60 * SECOND));
    let leader = start(&service, pay("k")).await;
    let started = Instant::now();
    let deadline = (started + 2 * SECOND).into_std();

    let waited = refusal(call(&service, pay("k").deadline(deadline)).await);
    assert_eq!(waited, told("timeout", Ran::Unknown, Verdict::TRANSIENT));
    assert_eq!(started.elapsed(), 2 * SECOND);
    assert_eq!(records.counts().waiters, 0);
    assert_eq!(answer(leader.await.unwrap()), 0);
    assert_eq!(asked.calls(), 1);
}

/// The layer's patience is shorter than the call and than its lease.
#[tokio::test(start_paused = true)]
async fn a_waiter_is_told_in_flight_when_it_has_waited_for_long_enough() {
    for (setting, most) in [(None, 30 * SECOND), (Some(2 * SECOND), 2 * SECOND)] {
        let builder = IdempotencyLayer::builder();
        let builder = setting.map_or(builder, |wait| IdempotencyLayer::builder().max_wait(wait));
        let log = Arc::new(Log::default());
        let layer = builder.observer(log.observer()).build().unwrap();
        let (service, records, asked) = guarded_by(&layer, counting(300 * SECOND));
        let leader = start(&service, pay("k")).await;
        let started = Instant::now();
        let later = (started + HOUR).into_std();
        for call_again in [pay("k"), pay("k").deadline(later)] {
            let asked_again = Instant::now();
            let in_flight = told("idempotency_in_flight", Ran::Unknown, Verdict::TRANSIENT);
            assert_eq!(refusal(call(&service, call_again).await), in_flight);
            assert_eq!(asked_again.elapsed(), most);
        }
        let refused = log.take().iter().filter(|event| event.contains("Refused")).count();
        assert_eq!(refused, 2);
        let deadline = (Instant::now() + SECOND).into_std();
        assert_eq!(refusal(call(&service, pay("k").deadline(deadline)).await).0, "timeout");
        assert_eq!((asked.calls(), records.counts().waiters), (1, 0));
        assert_eq!(answer(leader.await.unwrap()), 0);
        assert_eq!(answer(call(&service, pay("k")).await), 0, "its end is on record");
    }
}

/// Deadlines end just as the call does, or as the claim passes on: with a store and without.
#[tokio::test(start_paused = true)]
async fn who_has_no_time_left_when_the_call_ends_leaves_nothing_behind() {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut told = [0; 2];
    for round in 0..rounds(400, 20_000) {
        let builder = IdempotencyLayer::builder();
        let builder = if rng.bool() { builder.store(Memory::new()) } else { builder };
        let ms = |n: u64| Duration::from_millis(n);
        let (service, records, asked) = guarded_by(&builder.build().unwrap(), counting(ms(2)));
        // The tool is not ready before that, so callers can leave before it starts.
        asked.set_capacity(0);
        let begun = Instant::now();
        let callers: Vec<_> = (0..6)
            .map(|_| {
                let patience = begun + ms(rng.u64(1..5));
                let leaves = rng.bool().then(|| begun + ms(rng.u64(0..5)));
                let call = call_owned(service.clone(), pay("k").deadline(patience.into_std()));
                tokio::spawn(async move {
                    match leaves {
                        Some(leaves) => tokio::time::timeout_at(leaves, call).await.ok(),
                        None => Some(call.await),
                    }
                })
            })
            .collect();
        pass(ms(rng.u64(0..3))).await;
        asked.set_capacity(1);
        for caller in callers {
            match caller.await.unwrap() {
                Some(Ok(outcome)) => told[0] += usize::from(answer(Ok(outcome)) == 0),
                Some(end) => {
                    assert_eq!(refusal(end).0, "timeout", "round {round}");
                    told[1] += 1;
                }
                None => {}
            }
        }
        pass(SECOND).await;
        assert!(asked.calls() <= 1, "round {round}: it ran {} times", asked.calls());
        let Counts { inflight, unknown, waiters, .. } = records.counts();
        assert_eq!((inflight, unknown, waiters), (0, 0, 0), "round {round}");
        assert_eq!(answer(call(&service, pay("k")).await), 0, "round {round}: the key is stuck");
    }
    assert!(told.iter().all(|&told| told > 0), "answers and timeouts: {told:?}");
}

async fn call_owned(service: Guarded, asked: ToolCall) -> Result<ToolOutcome, BoxError> {
    call(&service, asked).await
}

#[tokio::test(start_paused = true)]
async fn waiters_are_bounded_and_a_place_comes_back() {
    let layer = IdempotencyLayer::builder().max_waiters(2).build().unwrap();
    let (service, records, _) = guarded_by(&layer, counting(20 * SECOND));
    let leader = start(&service, pay("k")).await;
    let one = start(&service, pay("k")).await;
    let two = start(&service, pay("k")).await;
    let full = told("idempotency_in_flight", Ran::Unknown, Verdict::TRANSIENT);
    assert_eq!(refusal(call(&service, pay("k")).await), full);

    one.abort();
    settle().await;
    assert_eq!(records.counts().waiters, 1);
    let three = start(&service, pay("k")).await;
    for task in [leader, two, three] {
        assert_eq!(answer(task.await.unwrap()), 0);
    }
}

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_leaves_nothing_behind_and_is_not_woken() {
    let (service, records, _) = guarded(counting(SECOND));
    let leader = start(&service, pay("k")).await;
    let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
    {
        let waker = Waker::from(wakes.clone());
        let mut waiter = pin!(service.clone().oneshot(pay("k")));
        assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(records.counts().waiters, 1);
    }
    assert_eq!((records.counts().waiters, Arc::strong_count(&wakes)), (0, 1));
    assert_eq!(answer(leader.await.unwrap()), 0);
    assert_eq!(wakes.0.load(Relaxed), 0);
}

/// Powertools' rejected duplicate deleted the owner's lock (#5675).
#[tokio::test(start_paused = true)]
async fn a_rejected_duplicate_does_not_delete_the_owners_record() {
    let (service, records, asked) = guarded(counting(SECOND));
    let leader = start(&service, pay("k")).await;
    let before = records.records();
    for rejected in [best_effort(pay("k")), with_params("k", "{}")] {
        call(&service, rejected).await.unwrap_err();
    }
    assert_eq!(records.records(), before);
    assert_eq!(answer(leader.await.unwrap()), 0);
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    assert_eq!(asked.calls(), 1);
}

/// Powertools ran it three times: the record of the second was deleted by the late first.
#[tokio::test(start_paused = true)]
async fn a_late_failure_does_not_delete_a_later_owners_record() {
    let tool: Tool = Scripted::by(|n, _| match n {
        0 => Step::after(10 * SECOND, fails("http_500", Ran::Yes, Verdict::TRANSIENT)),
        _ => Step::after(20 * SECOND, Step::Ok(number(n))),
    });
    let (service, records, asked) = guarded(tool);
    let late = start(&service, pay("k")).await;
    assert!(records.clear(&key_of(&pay("k"))), "an operator thinks it is lost");
    let owner = start(&service, pay("k")).await;
    late.await.unwrap().unwrap_err();

    let third = start(&service, pay("k")).await;
    assert_eq!(answer(owner.await.unwrap()), 1);
    assert_eq!(answer(third.await.unwrap()), 1);
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_waiter_gets_the_value_although_the_record_is_gone() {
    let layer = IdempotencyLayer::builder().capacity(1).build().unwrap();
    let (service, records, _) = guarded_by(&layer, counting(SECOND));
    let leader = start(&service, pay("k")).await;
    let mut waiter = Box::pin(service.clone().oneshot(pay("k")));
    assert!(waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(answer(leader.await.unwrap()), 0);

    assert_eq!(answer(call(&service, pay("other")).await), 1);
    assert_eq!(records.record(&key_of(&pay("k"))), None, "evicted");
    assert_eq!(answer(waiter.await), 0);
}

#[tokio::test(start_paused = true)]
async fn replays_need_no_capacity_of_the_tool() {
    let tool = counting(SECOND).capacity(1);
    let (service, _, asked) = guarded(tool);
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    let busy = start(&service, pay("busy")).await;
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    assert_eq!(answer(busy.await.unwrap()), 1);
    assert_eq!(asked.max_in_flight(), 1);
}
