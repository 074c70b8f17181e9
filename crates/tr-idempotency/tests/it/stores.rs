//! Layers over one store, each a process of its own.
use crate::{faults::Faulty, support::*};
use std::time::Duration;
use tr_core::{DedupeMode, Effect, MatchedOn, Ran, ToolOutcome, Verdict};
use tr_idempotency::{
    Counts, Handle, IdempotencyLayer,
    protocol::Phase,
    store::{Memory, RecordStore},
};
use tr_testkit::tool::{Scripted, Step};

/// One process over these records.
fn process(records: &Memory, tool: Tool) -> (Guarded, Handle<ToolOutcome>, Asked) {
    let builder = IdempotencyLayer::builder().store(records.clone());
    guarded_by(&builder.max_wait(HOUR).build().unwrap(), tool)
}

/// How the record stands, if there is one.
async fn phase(records: &Memory, key: &str) -> Option<Phase> {
    let stored = records.read(&key_of(&pay(key))).await.unwrap();
    stored.map(|stored| stored.record.state.phase())
}

#[tokio::test(start_paused = true)]
async fn tr_02_enforced_duplicate_in_another_process_waits_for_the_one_execution() {
    let records = Memory::new();
    let (a, _, ran_a) = process(&records, counting(5 * SECOND));
    let (b, front, ran_b) = process(&records, counting(SECOND));
    let first = start(&a, pay("k")).await;
    let started = tokio::time::Instant::now();
    let waiting = [start(&b, pay("k")).await, start(&b, pay("k")).await];

    for second in waiting {
        let second = second.await.unwrap().unwrap();
        assert_eq!(started.elapsed(), 5 * SECOND);
        assert_eq!(second.replay().unwrap().matched_on, MatchedOn::Inflight);
        assert_eq!(answer(Ok(second)), 0);
    }
    assert!(!first.await.unwrap().unwrap().from_cache());
    assert_eq!((ran_a.calls(), ran_b.calls()), (1, 0));
    assert_eq!(front.counts(), Counts::default(), "the store has it");
}

#[tokio::test(start_paused = true)]
async fn tr_02_best_effort_duplicate_in_another_process_gets_the_marker_at_once() {
    let records = Memory::new();
    let (a, ..) = process(&records, counting(5 * SECOND));
    let (b, front, ran_b) = process(&records, counting(SECOND));
    let first = start(&a, pay("k")).await;
    let marker = refusal(call(&b, best_effort(pay("k"))).await);
    assert_eq!(marker, told("idempotency_in_flight", Ran::Unknown, Verdict::TRANSIENT));
    // Who is willing to wait gets the claim of who was not.
    let unpolled = tower::Service::call(&mut b.clone(), best_effort(pay("k")));
    let waiter = start(&b, pay("k")).await;
    assert_eq!(front.counts().waiters, 1);
    assert_eq!(refusal(unpolled.await).0, "idempotency_in_flight");
    assert_eq!(answer(waiter.await.unwrap()), 0);
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!(ran_b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn tr_02_disabled_duplicate_in_another_process_runs() {
    let records = Memory::new();
    let (a, ..) = process(&records, counting(5 * SECOND));
    let (b, _, ran_b) = process(&records, counting(SECOND));
    let first = start(&a, pay("k")).await;
    assert_eq!(answer(call(&b, pay("k").dedupe(DedupeMode::Disabled)).await), 0);
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!(ran_b.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn tr_03_duplicate_after_completion_is_answered_from_the_record_of_another_process() {
    let records = Memory::new();
    let (a, ..) = process(&records, counting(SECOND));
    let first = call(&a, pay("k")).await.unwrap();
    assert!(first.recorded());
    drop(a);
    pass(90 * SECOND).await;
    let (b, _, ran_b) = process(&records, counting(SECOND));
    let replayed = call(&b, pay("k")).await.unwrap();
    let replay = replayed.replay().unwrap();
    assert_eq!((replay.matched_on, replay.age), (MatchedOn::Completed, 90 * SECOND));
    assert_eq!(replayed.content(), first.content());
    assert_eq!(ran_b.calls(), 0);
    pass(24 * HOUR).await;
    assert_eq!(answer(call(&b, pay("k")).await), 0);
    assert_eq!(ran_b.calls(), 1, "its time is over");
}

#[tokio::test(start_paused = true)]
async fn tr_04_other_params_are_a_conflict_in_every_process_and_state() {
    let records = Memory::new();
    let (a, ..) = process(&records, counting(5 * SECOND));
    let (b, _, ran_b) = process(&records, counting(SECOND));
    let conflict = told("idempotency_conflict", Ran::No, Verdict::Permanent);
    let first = start(&a, pay("k")).await;
    let other = || with_params("k", r#"{"amount":6}"#);
    for _ in 0..2 {
        assert_eq!(refusal(call(&b, other()).await), conflict);
        assert_eq!(refusal(call(&b, best_effort(other())).await), conflict);
        pass(6 * SECOND).await;
    }
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!(ran_b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_given_again_with_its_facts_and_words() {
    let records = Memory::new();
    let tool: Tool = Scripted::by(|_, _| fails("http_400", Ran::Yes, Verdict::Permanent));
    let (a, ..) = process(&records, tool);
    let first = call(&a, pay("k")).await.unwrap_err();
    let (b, _, ran_b) = process(&records, counting(SECOND));
    let again = call(&b, pay("k")).await.unwrap_err();
    // The code and whether it ran are recorded beside the words.
    let words = |error: &tr_core::BoxError| {
        let words = tr_core::causes(&**error).filter(|it| !it.is::<tr_core::FailureInfo>());
        words.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(words(&again), words(&first));
    assert_eq!(refusal(Err(again)), told("http_400", Ran::Yes, Verdict::Permanent));
    assert_eq!(ran_b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_many_processes_one_runs() {
    let records = Memory::new();
    let all: Vec<_> = (0..20).map(|_| process(&records, counting(SECOND))).collect();
    let mut tasks = Vec::new();
    for (service, ..) in &all {
        for _ in 0..5 {
            tasks.push(start(service, pay("k")).await);
        }
    }
    for task in tasks {
        assert_eq!(answer(task.await.unwrap()), 0);
    }
    assert_eq!(all.iter().map(|(_, _, ran)| ran.calls()).sum::<usize>(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_process_has_one_watcher_and_claims_once_for_all_its_callers() {
    let records = Memory::new();
    let (a, ..) = process(&records, counting(5 * SECOND));
    let counted = Faulty::new(records.clone());
    let layer = IdempotencyLayer::builder().store(counted.clone()).build().unwrap();
    let (b, front, _) = guarded_by(&layer, counting(SECOND));
    let first = start(&a, pay("k")).await;
    let mut waiting = Vec::new();
    for _ in 0..50 {
        waiting.push(start(&b, pay("k")).await);
    }
    assert_eq!(front.counts().waiters, 49);
    assert_eq!((counted.calls("claim"), counted.calls("watch")), (1, 1));
    for waiter in waiting {
        assert_eq!(answer(waiter.await.unwrap()), 0);
    }
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!((counted.calls("claim"), counted.calls("watch")), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn who_watches_and_leaves_passes_the_watch_on() {
    let records = Memory::new();
    let (a, ..) = process(&records, counting(5 * SECOND));
    let (b, front, ran_b) = process(&records, counting(SECOND));
    let _first = start(&a, pay("k")).await;
    let watcher = start(&b, pay("k")).await;
    let waiter = start(&b, pay("k")).await;
    watcher.abort();
    settle().await;
    assert_eq!(front.counts().waiters, 0, "the waiter watches now");
    assert_eq!(answer(waiter.await.unwrap()), 0);
    assert_eq!(ran_b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_waits_no_longer_than_its_own_deadline() {
    let records = Memory::new();
    let (a, ..) = process(&records, counting(60 * SECOND));
    let (b, front, ran_b) = process(&records, counting(SECOND));
    let first = start(&a, pay("k")).await;
    let deadline = (tokio::time::Instant::now() + 2 * SECOND).into_std();
    let started = tokio::time::Instant::now();
    let hasty = start(&b, pay("k").deadline(deadline)).await;
    let patient = start(&b, pay("k")).await;
    let timeout = told("timeout", Ran::Unknown, Verdict::TRANSIENT);
    assert_eq!(refusal(hasty.await.unwrap()), timeout);
    assert_eq!(started.elapsed(), 2 * SECOND);
    assert_eq!(answer(patient.await.unwrap()), 0);
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!((ran_b.calls(), front.counts()), (0, Counts::default()));
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_at_a_third_while_the_call_runs() {
    let records = Memory::new();
    let counted = Faulty::new(records.clone());
    let layer = IdempotencyLayer::builder().store(counted.clone()).build().unwrap();
    let (a, ..) = guarded_by(&layer, counting(10 * MINUTE));
    let (b, _, ran_b) = process(&records, counting(SECOND));
    let first = start(&a, pay("k")).await;
    pass(2 * MINUTE + SECOND).await;
    assert_eq!(counted.calls("renew"), 3);
    assert_eq!(answer(call(&b, pay("k")).await), 0);
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!(ran_b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_in_mid_run_leaves_unknown() {
    let records = Memory::new();
    let (a, _, ran_a) = process(&records, counting(HOUR));
    // It dies: nothing of it runs any more, and nothing is cleaned up.
    let mut dies = Box::pin(tower::ServiceExt::oneshot(a, pay("k")));
    std::future::poll_fn(|cx| {
        let _ = std::future::Future::poll(dies.as_mut(), cx);
        std::task::Poll::Ready(())
    })
    .await;
    std::mem::forget(dies);
    assert_eq!(ran_a.calls(), 1);
    let (b, _, ran_b) = process(&records, counting(SECOND));
    let impatient = IdempotencyLayer::builder().store(records.clone()).build().unwrap();
    let (impatient, front, ran_impatient) = guarded_by(&impatient, counting(SECOND));
    let started = tokio::time::Instant::now();
    // The second one waits behind the first, in this process, and not for longer either.
    let first = start(&impatient, pay("k")).await;
    pass(10 * SECOND).await;
    let second = start(&impatient, pay("k")).await;
    let in_flight = told("idempotency_in_flight", Ran::Unknown, Verdict::TRANSIENT);
    assert_eq!(refusal(first.await.unwrap()), in_flight);
    assert_eq!(started.elapsed(), 30 * SECOND);
    assert_eq!(refusal(second.await.unwrap()), in_flight);
    assert_eq!(started.elapsed(), 40 * SECOND);
    assert_eq!((ran_impatient.calls(), front.counts()), (0, Counts::default()));
    let unknown = told("outcome_unknown", Ran::Unknown, Verdict::Permanent);
    assert_eq!(refusal(call(&b, pay("k")).await), unknown, "once the lease has ended");
    assert_eq!(refusal(call(&b, read(pay("k"))).await).0, unknown.0, "it was mutating");
    pass(24 * HOUR).await;
    assert_eq!(answer(call(&b, pay("k")).await), 0);
    assert_eq!(ran_b.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_caller_is_driven_to_the_end_and_recorded_for_all() {
    let records = Memory::new();
    let (a, _, ran_a) = process(&records, counting(5 * SECOND));
    let (b, _, ran_b) = process(&records, counting(SECOND));
    start(&a, pay("k")).await.abort();
    settle().await;
    assert_eq!(phase(&records, "k").await, Some(Phase::Inflight));
    assert_eq!(answer(call(&b, pay("k")).await), 0);
    assert_eq!((ran_a.calls(), ran_a.cancelled(), ran_b.calls()), (1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_recorded_as_unknown_at_once() {
    let records = Memory::new();
    let (a, ..) = process(&records, Scripted::script([Step::Panic]));
    assert!(start(&a, pay("k")).await.await.unwrap_err().is_panic());
    settle().await;
    assert_eq!(phase(&records, "k").await, Some(Phase::Unknown));
    let (b, _, ran_b) = process(&records, counting(SECOND));
    assert_eq!(refusal(call(&b, pay("k")).await).0, "outcome_unknown");
    assert_eq!(ran_b.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_readiness_gives_its_claim_back_when_dropped() {
    let records = Memory::new();
    let (a, front, asked) = process(&records, counting(SECOND).capacity(0));
    let waits = start(&a, pay("k")).await;
    assert_eq!(phase(&records, "k").await, Some(Phase::Inflight));
    waits.abort();
    settle().await;
    assert_eq!((phase(&records, "k").await, asked.calls()), (None, 0));
    assert_eq!(front.counts(), Counts::default());
}

#[tokio::test(start_paused = true)]
async fn a_derived_key_that_only_joins_cut_off_calls_stays_in_its_process() {
    let records = Memory::new();
    let (a, _, ran_a) = process(&records, counting(SECOND));
    assert_eq!(answer(call(&a, unkeyed("{}")).await), 0);
    assert_eq!(answer(call(&a, unkeyed("{}")).await), 1);
    assert_eq!(ran_a.calls(), 2);
    let all = tr_idempotency::store::Query::ALL;
    assert_eq!(records.count(&all).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn tools_are_told_the_claim_under_which_they_run() {
    let records = Memory::new();
    let tool: Tool = Scripted::by(|_, call: &tr_core::ToolCall| {
        let fence = call.fencing_token().expect("claimed in a store");
        let told = serde_json::json!([fence.epoch, fence.provider_key()]);
        Step::Ok(ToolOutcome::success(told))
    });
    let (a, ..) = process(&records, tool);
    let told =
        |outcome: ToolOutcome| -> (u64, String) { outcome.content().unwrap().parse().unwrap() };
    let (epoch, key) = told(call(&a, pay("k")).await.unwrap());
    assert_eq!(key, key_of(&pay("k")).to_string());
    assert!(records.clear(&key_of(&pay("k"))).await.unwrap());
    let (later, same) = told(call(&a, pay("k")).await.unwrap());
    assert!(later > epoch);
    assert_eq!(same, key);
}

#[tokio::test(start_paused = true)]
async fn a_full_store_refuses_without_running() {
    let records = Memory::with_capacity(1);
    let (a, _, asked) = process(&records, counting(MINUTE));
    let _first = start(&a, pay("one")).await;
    let full = told("store_full", Ran::No, Verdict::TRANSIENT);
    assert_eq!(refusal(call(&a, pay("two")).await), full);
    assert_eq!(asked.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_oversized_answer_is_done_and_not_run_again() {
    let records = Memory::new();
    let big: Tool =
        Scripted::by(|_, _| Step::Ok(ToolOutcome::success(serde_json::json!("x".repeat(2_000)))));
    let layer =
        IdempotencyLayer::builder().store(records.clone()).max_record_bytes(1_000).build().unwrap();
    let (a, _, asked) = guarded_by(&layer, big);
    for (key, effect) in [("m", Effect::Mutating), ("r", Effect::ReadOnly)] {
        let first = call(&a, pay(key).effect(effect)).await.unwrap();
        assert_eq!(first.content().unwrap().get().len(), 2_002, "the caller gets it whole");
        assert!(!first.recorded());
        assert_eq!(phase(&records, key).await, Some(Phase::Done));
        let gone = told("answer_not_kept", Ran::Yes, Verdict::Permanent);
        assert_eq!(refusal(call(&a, pay(key).effect(effect)).await), gone);
    }
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_success_is_given_again_from_memory_for_its_time_only() {
    let records = Memory::new();
    let counted = Faulty::new(records.clone());
    let layer = IdempotencyLayer::builder()
        .store(counted.clone())
        .replay_from_memory(MINUTE)
        .build()
        .unwrap();
    let (a, ..) = guarded_by(&layer, counting(Duration::ZERO));
    assert_eq!(answer(call(&a, pay("k")).await), 0);
    for _ in 0..3 {
        assert_eq!(answer(call(&a, pay("k")).await), 0);
    }
    assert_eq!(counted.calls("claim"), 1);
    pass(MINUTE).await;
    assert_eq!(answer(call(&a, pay("k")).await), 0);
    assert_eq!(counted.calls("claim"), 2, "asked again");
    let replayed = call(&a, pay("k")).await.unwrap();
    assert_eq!(replayed.replay().unwrap().age, MINUTE);
    assert_eq!(counted.calls("claim"), 2);
    // No longer than the record itself lasts.
    pass(24 * HOUR - MINUTE).await;
    assert_eq!(answer(call(&a, pay("k")).await), 1);
}
