//! The acceptance cases of the reliability layer that are this crate's.
use crate::support::*;
use std::time::Duration;
use tr_core::{DedupeMode, MatchedOn, Ran, Verdict, canonical::FingerprintKey};

#[tokio::test(start_paused = true)]
async fn tr_02_enforced_duplicate_waits_for_the_one_execution() {
    let (service, _, asked) = guarded(counting(5 * SECOND));
    let first = start(&service, pay("k")).await;
    let second = start(&service, pay("k")).await;
    let started = tokio::time::Instant::now();

    let second = second.await.unwrap().unwrap();
    assert_eq!(started.elapsed(), 5 * SECOND);
    assert!(!first.await.unwrap().unwrap().from_cache());
    assert_eq!(second.replay().unwrap().matched_on, MatchedOn::Inflight);
    assert_eq!(answer(Ok(second)), 0);
    assert_eq!(asked.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn tr_02_best_effort_duplicate_gets_the_marker_at_once() {
    let (service, _, asked) = guarded(counting(5 * SECOND));
    let first = start(&service, pay("k")).await;
    let started = tokio::time::Instant::now();

    let marker = refusal(call(&service, best_effort(pay("k"))).await);
    assert_eq!(marker, told("idempotency_in_flight", Ran::Unknown, Verdict::TRANSIENT));
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!(asked.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn tr_02_disabled_duplicate_runs() {
    let (service, records, asked) = guarded(counting(5 * SECOND));
    let first = start(&service, pay("k")).await;
    assert_eq!(answer(call(&service, pay("k").dedupe(DedupeMode::Disabled)).await), 1);
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!((asked.calls(), records.counts().records), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn tr_03_duplicate_after_completion_is_answered_from_the_record() {
    let (service, records, asked) = guarded(counting(SECOND));
    assert!(!call(&service, pay("k")).await.unwrap().from_cache());
    let digest = records.record(&key_of(&pay("k"))).unwrap().request.params_digest;
    pass(90 * SECOND).await;

    let replayed = call(&service, pay("k")).await.unwrap();
    assert!(replayed.from_cache());
    let replay = replayed.replay().unwrap();
    assert_eq!((replay.matched_on, replay.age), (MatchedOn::Completed, 90 * SECOND));
    let fingerprint = FingerprintKey::of_process().fingerprint(key_of(&pay("k")));
    assert_eq!(replay.fingerprint, fingerprint.to_bytes());
    assert_eq!(answer(Ok(replayed)), 0);
    assert_eq!(asked.calls(), 1);
    assert_eq!(records.record(&key_of(&pay("k"))).unwrap().request.params_digest, digest);
}

#[tokio::test(start_paused = true)]
async fn tr_03_another_session_does_not_collide() {
    let (service, _, asked) = guarded(counting(SECOND));
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    assert_eq!(answer(call(&service, pay("k").session("other")).await), 1);
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn tr_03_records_live_for_their_time() {
    let (service, _, _) = guarded(counting(Duration::ZERO));
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    pass(24 * HOUR - Duration::from_millis(1)).await;
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    pass(Duration::from_millis(1)).await;
    assert_eq!(answer(call(&service, pay("k")).await), 1);
}
