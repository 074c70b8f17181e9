//! What others get wrong, each by name, over a store that several processes share.
use crate::{faults::Faulty, support::*};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use tr_core::{Effect, Ran, ToolOutcome, Verdict};
use tr_idempotency::{
    Handle, IdempotencyLayer,
    store::{Memory, RecordStore},
};
use tr_testkit::tool::{Scripted, Step};

fn process(store: impl RecordStore, tool: Tool) -> (Guarded, Handle<ToolOutcome>, Asked) {
    let layer = IdempotencyLayer::builder().store(store).max_wait(HOUR).build().unwrap();
    guarded_by(&layer, tool)
}

/// A process that nothing is heard of any more: killed, in mid-run.
async fn killed(service: &Guarded, call: tr_core::ToolCall) {
    let mut dies = Box::pin(tower::ServiceExt::oneshot(service.clone(), call));
    let poll = |cx: &mut std::task::Context<'_>| {
        assert!(std::future::Future::poll(dies.as_mut(), cx).is_pending());
        std::task::Poll::Ready(())
    };
    std::future::poll_fn(poll).await;
    std::mem::forget(dies);
}

/// Powertools 3.37: the lease expires, B claims, A fails late and deletes B's record, C runs.
#[tokio::test(start_paused = true)]
async fn powertools_a_late_failure_of_an_expired_owner_deletes_nothing() {
    for (effect, runs) in [(Effect::Mutating, 1), (Effect::Idempotent, 2)] {
        let records = Memory::new();
        let away = Faulty::new(records.clone());
        let late: Tool = Scripted::by(|_, _| {
            Step::after(10 * MINUTE, fails("http_500", Ran::Yes, Verdict::TRANSIENT))
        });
        let (a, _, ran_a) = process(away.clone(), late);
        let (b, _, ran_b) = process(records.clone(), counting(SECOND));
        let (c, _, ran_c) = process(records.clone(), counting(SECOND));
        let asked = || pay("k").effect(effect);
        let first = start(&a, asked()).await;
        away.down();
        pass(3 * MINUTE).await;
        let second = call(&b, asked()).await;
        assert_eq!(second.is_ok(), effect != Effect::Mutating);
        away.up();
        assert!(first.await.unwrap().is_err());
        let _ = call(&c, asked()).await;
        assert_eq!(ran_a.calls() + ran_b.calls() + ran_c.calls(), runs, "{effect:?}");
    }
}

/// Powertools: kill -9 then retry is 20 effects for 10 keys.
#[tokio::test(start_paused = true)]
async fn powertools_a_retry_after_a_kill_is_no_second_effect() {
    let records = Memory::new();
    let (a, _, ran_a) = process(records.clone(), counting(HOUR));
    let keys: Vec<_> = (0..10).map(|n| format!("k{n}")).collect();
    for key in &keys {
        killed(&a, pay(key)).await;
    }
    pass(3 * MINUTE).await;
    let (b, _, ran_b) = process(records, counting(SECOND));
    for key in &keys {
        assert_eq!(refusal(call(&b, pay(key)).await).0, "outcome_unknown");
    }
    assert_eq!((ran_a.calls(), ran_b.calls()), (10, 0));
}

/// Powertools for TypeScript #5705: the params digest is lost at completion on Redis.
#[tokio::test(start_paused = true)]
async fn powertools_the_params_digest_outlives_completion() {
    let records = Memory::new();
    let (a, ..) = process(records.clone(), counting(SECOND));
    call(&a, pay("k")).await.unwrap();
    let (b, _, ran_b) = process(records, counting(SECOND));
    let other = call(&b, with_params("k", r#"{"amount":6}"#)).await;
    assert_eq!(refusal(other).0, "idempotency_conflict");
    assert_eq!(ran_b.calls(), 0);
}

/// Powertools for TypeScript #5714: orphan recovery overwrites without comparing.
#[tokio::test(start_paused = true)]
async fn powertools_an_orphan_is_taken_over_by_one() {
    let records = Memory::new();
    let (a, ..) = process(records.clone(), counting(HOUR));
    killed(&a, read(pay("k"))).await;
    pass(3 * MINUTE).await;
    let all: Vec<_> = (0..10).map(|_| process(records.clone(), counting(SECOND))).collect();
    let mut tasks = Vec::new();
    for (service, ..) in &all {
        tasks.push(start(service, read(pay("k"))).await);
    }
    for task in tasks {
        assert_eq!(answer(task.await.unwrap()), 0);
    }
    assert_eq!(all.iter().map(|(_, _, ran)| ran.calls()).sum::<usize>(), 1);
}

/// Powertools for TypeScript #5675: a rejected duplicate deletes the owner's lock.
#[tokio::test(start_paused = true)]
async fn powertools_a_rejected_duplicate_leaves_the_owners_claim() {
    let records = Memory::new();
    let (a, _, ran_a) = process(records.clone(), counting(MINUTE));
    let (b, _, ran_b) = process(records, counting(SECOND));
    let first = start(&a, pay("k")).await;
    assert_eq!(refusal(call(&b, best_effort(pay("k"))).await).0, "idempotency_in_flight");
    let conflict = call(&b, with_params("k", "{}")).await;
    assert_eq!(refusal(conflict).0, "idempotency_conflict");
    assert_eq!(answer(call(&b, pay("k")).await), 0);
    assert!(first.await.unwrap().unwrap().recorded());
    assert_eq!((ran_a.calls(), ran_b.calls()), (1, 0));
}

/// Powertools: of 50 concurrent callers 49 get an error. agent-effects: of 1,000, 999 do.
#[tokio::test(start_paused = true)]
async fn powertools_and_agent_effects_a_thousand_concurrent_callers_get_the_answer() {
    let records = Memory::new();
    let all: Vec<_> = (0..5).map(|_| process(records.clone(), counting(SECOND))).collect();
    let mut tasks = Vec::new();
    for n in 0..1_000 {
        let (service, ..) = &all[n % all.len()];
        tasks.push(tokio::spawn(tower::ServiceExt::oneshot(service.clone(), pay("k"))));
    }
    for task in tasks {
        assert_eq!(answer(task.await.unwrap()), 0);
    }
    assert_eq!(all.iter().map(|(_, _, ran)| ran.calls()).sum::<usize>(), 1);
}

/// moka's `get_with`: a panicking init with 300 callers ran 202 times.
#[tokio::test(start_paused = true)]
async fn moka_a_panicking_call_with_300_callers_runs_once() {
    let records = Memory::new();
    let bad = || Scripted::by(|_, _| Step::after(SECOND, Step::Panic));
    let all: Vec<_> = (0..3).map(|_| process(records.clone(), bad())).collect();
    let mut tasks = Vec::new();
    for n in 0..300 {
        let (service, ..) = &all[n % all.len()];
        tasks.push(tokio::spawn(tower::ServiceExt::oneshot(service.clone(), pay("k"))));
    }
    let mut panics = 0;
    for task in tasks {
        match task.await {
            Ok(end) => assert_eq!(refusal(end).0, "outcome_unknown"),
            Err(error) => panics += usize::from(error.is_panic()),
        }
    }
    assert_eq!(panics, 1);
    assert_eq!(all.iter().map(|(_, _, ran)| ran.calls()).sum::<usize>(), 1);
}

/// Go's singleflight and tower-resilience's coalesce: a cancelled leader fails everyone.
#[tokio::test(start_paused = true)]
async fn singleflight_and_coalesce_a_cancelled_leader_fails_nobody() {
    let records = Memory::new();
    let (a, _, ran_a) = process(records.clone(), counting(10 * SECOND));
    let (b, _, ran_b) = process(records, counting(SECOND));
    let leader = start(&a, pay("k")).await;
    let followers =
        [start(&a, pay("k")).await, start(&b, pay("k")).await, start(&b, pay("k")).await];
    leader.abort();
    for follower in followers {
        assert_eq!(answer(follower.await.unwrap()), 0);
    }
    assert_eq!((ran_a.calls(), ran_b.calls()), (1, 0));
}

/// tower-resilience's coalesce: waiters spin, 965,440 polls in 300 ms.
#[tokio::test(start_paused = true)]
async fn coalesce_waiters_neither_spin_nor_poll_the_store() {
    let records = Memory::new();
    let (a, ..) = process(records.clone(), counting(MINUTE));
    let counted = Faulty::new(records);
    let (b, ..) = process(counted.clone(), counting(SECOND));
    let _first = start(&a, pay("k")).await;
    let polls = Arc::new(AtomicUsize::new(0));
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let (mut waits, polls) =
            (Box::pin(tower::ServiceExt::oneshot(b.clone(), pay("k"))), polls.clone());
        waiting.push(tokio::spawn(std::future::poll_fn(move |cx| {
            polls.fetch_add(1, Relaxed);
            std::future::Future::poll(waits.as_mut(), cx)
        })));
    }
    pass(50 * SECOND).await;
    assert!(polls.load(Relaxed) <= 20, "{} polls", polls.load(Relaxed));
    assert_eq!((counted.calls("claim"), counted.calls("watch")), (1, 1));
    for waiter in waiting {
        assert_eq!(answer(waiter.await.unwrap()), 0);
    }
}

/// agno #10366, openai-agents-python #4254: a model's new id for the same call makes a new key.
#[tokio::test(start_paused = true)]
async fn agno_a_changed_tool_call_id_is_the_same_call() {
    let records = Memory::new();
    let (a, _, ran) = process(records, counting(SECOND));
    assert_eq!(answer(call(&a, pay("k").tool_call_id("t-1")).await), 0);
    assert_eq!(answer(call(&a, pay("k").tool_call_id("t-2")).await), 0);
    assert_eq!(ran.calls(), 1);
}

/// trigger.dev #2376: failed runs are replayed although they may succeed now.
#[tokio::test(start_paused = true)]
async fn trigger_dev_a_retriable_failure_runs_again_when_asked() {
    let job = || pay("k").effect(Effect::Idempotent);
    let records = Memory::new();
    let tool: Tool = Scripted::by(|n, _| match n {
        0 => fails("http_503", Ran::Yes, Verdict::TRANSIENT),
        n => Step::after(SECOND, Step::Ok(number(n))),
    });
    let (a, _, ran) = process(records, tool);
    assert_eq!(refusal(call(&a, job()).await).0, "http_503");
    assert_eq!(refusal(call(&a, job()).await).0, "http_503", "replayed");
    let mut again = Vec::new();
    for _ in 0..5 {
        again.push(start(&a, best_effort(job())).await);
    }
    let mut ran_again = 0;
    for task in again {
        match task.await.unwrap() {
            Ok(outcome) => ran_again += usize::from(answer(Ok(outcome)) == 1),
            Err(error) => assert_eq!(refusal(Err(error)).0, "idempotency_in_flight"),
        }
    }
    assert_eq!((ran_again, ran.calls()), (1, 2));
}
