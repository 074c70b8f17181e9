//! Callers that go away.
use crate::support::*;
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Waker},
    time::Duration,
};
use tower::ServiceExt;
use tower_layer::Layer;
use tr_core::{Ran, ToolCall, Verdict};
use tr_idempotency::{Counts, IdempotencyLayer, RecordState};
use tr_testkit::{
    drops,
    tool::{End, Scripted, Step},
};

#[tokio::test(start_paused = true)]
async fn dropped_before_its_first_poll_a_call_never_happens() {
    let (service, records, asked) = guarded(counting(SECOND));
    drop(tower::Service::call(&mut service.clone(), pay("k")));
    assert_eq!((asked.calls(), records.counts()), (0, Counts::default()));
    assert_eq!(answer(call(&service, pay("k")).await), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_under_which_nothing_started_passes_to_the_longest_waiter() {
    let (service, records, asked) = guarded(counting(SECOND));
    let unpolled = tower::Service::call(&mut service.clone(), pay("k"));
    let first = start(&service, pay("k")).await;
    let second = start(&service, pay("k")).await;
    assert_eq!((asked.calls(), records.counts().waiters), (0, 2));
    let before = records.record(&key_of(&pay("k"))).unwrap().epoch;

    drop(unpolled);
    settle().await;
    assert_eq!((asked.calls(), records.counts().waiters), (1, 1));
    assert!(records.record(&key_of(&pay("k"))).unwrap().epoch > before);
    let first = first.await.unwrap().unwrap();
    assert!(!first.from_cache(), "it ran for this caller");
    assert_eq!(answer(Ok(first)), 0);
    assert!(second.await.unwrap().unwrap().from_cache());
    assert_eq!(asked.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_passed_claim_passes_on_if_its_heir_is_gone_too() {
    let (service, records, asked) = guarded(counting(SECOND));
    let unpolled = tower::Service::call(&mut service.clone(), pay("k"));
    let mut waiters = Vec::new();
    for _ in 0..3 {
        let mut waiter = Box::pin(service.clone().oneshot(pay("k")));
        assert!(waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waiters.push(waiter);
    }
    drop(unpolled);
    drop(waiters.remove(0)); // it holds the claim, and has not looked
    drop(waiters.remove(0));
    assert_eq!(answer(waiters.remove(0).await), 0);
    assert_eq!((asked.calls(), records.counts().waiters), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn dropped_while_it_waits_for_readiness_a_call_never_happens() {
    let (service, records, asked) = guarded(counting(SECOND).capacity(0));
    let first = start(&service, pay("k")).await;
    let second = start(&service, pay("k")).await;
    first.abort();
    settle().await;
    assert_eq!(records.counts().waiters, 0, "the second has the claim");
    second.abort();
    settle().await;
    assert_eq!((asked.calls(), asked.waiting(), records.counts()), (0, 0, Counts::default()));
}

#[tokio::test(start_paused = true)]
async fn dropped_in_mid_run_a_call_is_driven_to_its_end_and_recorded() {
    let (service, records, asked) = guarded(counting(SECOND));
    let caller = start(&service, pay("k")).await;
    caller.abort();
    settle().await;
    assert_eq!((asked.calls(), asked.cancelled()), (1, 0));
    assert_eq!(records.counts().inflight, 1);
    // It joins the run that goes on.
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    let record = records.record(&key_of(&pay("k"))).unwrap();
    assert_eq!((record.state, asked.calls()), (RecordState::Done, 1));
}

#[tokio::test(start_paused = true)]
async fn dropped_without_a_key_a_call_ends_with_its_caller() {
    let layer =
        IdempotencyLayer::builder().derived_keys(tr_idempotency::DerivedKeys::Off).build().unwrap();
    let (service, _, asked) = guarded_by(&layer, counting(SECOND));
    let caller = start(&service, unkeyed("{}")).await;
    caller.abort();
    settle().await;
    assert_eq!((asked.calls(), asked.cancelled()), (1, 1));
}

#[test]
fn dropped_in_mid_run_without_a_runtime_a_call_leaves_unknown() {
    let tool: Tool = Scripted::script([Step::Hang]).then_repeat_last();
    let (service, records, asked) = guarded(tool);
    let mut caller = Box::pin(service.clone().oneshot(pay("k")));
    let mut waiter = Box::pin(service.clone().oneshot(pay("k")));
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(caller.as_mut().poll(cx).is_pending());
    assert!(waiter.as_mut().poll(cx).is_pending());
    drop(caller);
    assert_eq!(asked.cancelled(), 1);
    let std::task::Poll::Ready(end) = waiter.as_mut().poll(cx) else { panic!("told at once") };
    assert_eq!(refusal(end), told("outcome_unknown", Ran::Unknown, Verdict::Permanent));
    assert_eq!(records.unknown().len(), 1);
}

#[test]
fn a_runtime_that_shuts_down_leaves_unknown() {
    let tool: Tool = Scripted::script([Step::Hang]).then_repeat_last();
    let (service, records, _) = guarded(tool);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        start(&service, pay("abandoned")).await.abort();
        start(&service, pay("kept")).await;
    });
    drop(runtime);
    assert_eq!((records.counts().inflight, records.counts().unknown), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn what_has_panicked_is_not_polled_again() {
    let tool: Tool = Scripted::script([Step::Panic]);
    let (service, records, asked) = guarded(tool);
    let mut wreck = Box::pin(service.clone().oneshot(pay("k")));
    let cx = &mut Context::from_waker(Waker::noop());
    let mut poll = || wreck.as_mut().poll(cx);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut poll)).is_err());
    // Others know at once, though the wreck is still there.
    assert_eq!(records.unknown().len(), 1);
    let std::task::Poll::Ready(end) = poll() else { panic!("it ends") };
    assert_eq!(refusal(end), told("outcome_unknown", Ran::Unknown, Verdict::Permanent));
    assert_eq!((asked.calls(), asked.breaches()), (1, vec![]));
    assert_eq!(asked.attempts()[0].ended.unwrap().1, End::Panicked);
}

/// At each await point, alone and with a waiter behind it.
#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_nothing_leaks_and_nothing_runs_twice() {
    for polls in 0..6 {
        for waiters in 0..3 {
            let tool = Scripted::by(|n, _| {
                let late = Step::after(Duration::from_millis(1), Step::Ok(number(n)));
                Step::after(Duration::from_millis(1), late)
            });
            let (service, records, asked) = guarded(tool);
            let mut dropped = Box::pin(tower::Service::call(&mut service.clone(), pay("k")));
            let mut left = polls;
            let spent = std::future::poll_fn(|cx| {
                if left == 0 {
                    return std::task::Poll::Ready(());
                }
                left -= 1;
                dropped.as_mut().poll(cx).map(|_| ())
            });
            spent.await;
            let mut waiting = Vec::new();
            for _ in 0..waiters {
                waiting.push(start(&service, pay("k")).await);
            }
            drop(dropped);
            for waiter in waiting {
                assert_eq!(answer(waiter.await.unwrap()), 0);
            }
            assert_eq!(answer(call(&service, pay("k")).await), 0);
            let Counts { inflight, unknown, waiters, .. } = records.counts();
            assert_eq!((asked.calls(), inflight, unknown, waiters), (1, 0, 0, 0));
        }
    }
}

/// R2: overlapping callers of few keys vanish at random points.
#[tokio::test(start_paused = true)]
async fn dropped_at_random_points_no_claim_and_no_waiter_leaks() {
    let late = |n: usize| Step::after(Duration::from_millis(1), Step::Ok(number(n)));
    let tool: Tool = Scripted::by(move |n, _| match n % 7 {
        0 => fails("http_503", Ran::Yes, Verdict::TRANSIENT),
        1 => fails("circuit_open", Ran::No, Verdict::TRANSIENT),
        _ => Step::after(Duration::from_millis(1), late(n)),
    });
    let (service, records, asked) = guarded(tool.capacity(3).unlogged());
    let (mut rng, mut made) = (fastrand::Rng::with_seed(1), 0);
    let make = || {
        made += 1;
        // Ten callers for each key, a few keys at a time.
        let call = pay(&format!("k{}", made / 10 + rng.u64(..32)));
        let call = if rng.bool() { best_effort(call) } else { call };
        service.clone().oneshot(call)
    };
    let total = tr_testkit::rounds(20_000, 10_000_000);
    let report = drops::at_random(3, total, make).await;
    pass(SECOND).await;
    assert_eq!((report.finished + report.dropped, report.stuck), (total, 0));
    let Counts { inflight, unknown, waiters, .. } = records.counts();
    assert_eq!((inflight, unknown, waiters), (0, 0, 0));
    assert_eq!((asked.in_flight(), asked.reserved(), asked.waiting()), (0, 0, 0));
    println!("R2 in this process: {report:?}, {} runs", asked.calls());
    assert!(asked.calls() as u64 > total / 20, "most were replays: {}", asked.calls());
}

/// The same with real threads, where hand-overs and drops race.
#[test]
fn callers_on_many_threads_that_vanish_neither_leak_nor_run_a_call_twice() {
    const KEYS: usize = 500;
    let runs: Arc<[AtomicUsize; KEYS]> = Arc::new(std::array::from_fn(|_| AtomicUsize::new(0)));
    let tool = tower::service_fn({
        let runs = runs.clone();
        move |call: ToolCall| {
            let key = call.parts().idempotency.key.as_deref().unwrap().parse::<usize>().unwrap();
            let runs = runs.clone();
            async move {
                runs[key].fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
                Ok::<_, std::convert::Infallible>(number(key))
            }
        }
    });
    let layer = IdempotencyLayer::builder().build().unwrap();
    let records = layer.handle();
    let service = layer.layer(tool);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut tasks = Vec::new();
        for _ in 0..20_000 {
            let key = rng.usize(..KEYS);
            let task = tokio::spawn(service.clone().oneshot(pay(&key.to_string())));
            if rng.u8(..3) == 0 {
                task.abort();
            }
            tasks.push((key, task));
        }
        for (key, task) in tasks {
            match task.await {
                Ok(end) => assert_eq!(answer(end), key as u64),
                Err(error) => assert!(error.is_cancelled()),
            }
        }
        while records.counts().inflight > 0 {
            tokio::task::yield_now().await;
        }
    });
    let Counts { unknown, waiters, .. } = records.counts();
    assert_eq!((unknown, waiters), (0, 0));
    assert!(runs.iter().all(|runs| runs.load(Relaxed) <= 1));
    assert!(runs.iter().filter(|runs| runs.load(Relaxed) == 1).count() > KEYS / 2);
}
