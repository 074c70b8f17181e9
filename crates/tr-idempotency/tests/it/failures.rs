//! What a failed call leaves behind.
use crate::support::*;
use std::{sync::Arc, time::Duration};
use tr_core::{Effect, FailureInfo, MatchedOn, Ran, ToolError, ToolOutcome, Verdict, find};
use tr_idempotency::{IdempotencyLayer, error::SharedFailure, store::Memory};
use tr_testkit::tool::{Failure, Scripted, Step};

/// Fails the first call so, and answers the others with their number.
fn failing(step: Step<ToolOutcome>) -> Tool {
    Scripted::by(move |n, _| {
        let end = if n == 0 { step.clone() } else { Step::Ok(number(n)) };
        Step::after(SECOND, end)
    })
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_replayed_for_five_minutes_and_then_runs_again() {
    let harmless = || pay("k").effect(Effect::Idempotent);
    let failure = told("http_400", Ran::Yes, Verdict::Permanent);
    let (service, _, asked) = guarded(failing(fails("http_400", Ran::Yes, Verdict::Permanent)));
    assert_eq!(refusal(call(&service, harmless()).await), failure);
    pass(5 * MINUTE - Duration::from_millis(1)).await;
    for again in [harmless(), best_effort(harmless())] {
        assert_eq!(refusal(call(&service, again).await), failure);
    }
    assert_eq!(asked.calls(), 1);
    pass(Duration::from_millis(1)).await;
    assert_eq!(answer(call(&service, harmless()).await), 1);
}

/// No clock moves between the failure and the repeat.
#[tokio::test(start_paused = true)]
async fn a_failure_that_did_not_run_and_is_not_kept_is_never_replayed() {
    let refusal_of = |ran| failing(fails("refused", ran, Verdict::Permanent));
    let layer = || IdempotencyLayer::builder().failed_ttl(Duration::ZERO);
    for layer in [layer(), layer().store(Memory::new())] {
        let layer = layer.build().unwrap();
        let (service, handle, asked) = guarded_by(&layer, refusal_of(Ran::No));
        assert_eq!(refusal(call(&service, pay("k")).await).1, Ran::No);
        assert_eq!(handle.counts().records, 0);
        assert_eq!(answer(call(&service, pay("k")).await), 1);
        assert_eq!(asked.calls(), 2);

        let (service, _, asked) = guarded_by(&layer, refusal_of(Ran::Yes));
        for _ in 0..2 {
            assert_eq!(refusal(call(&service, pay("ran")).await).1, Ran::Yes);
        }
        assert_eq!(asked.calls(), 1, "one that ran is kept as a success is");
    }
}

#[tokio::test(start_paused = true)]
async fn each_caller_gets_a_box_of_its_own_around_the_one_failure() {
    let (service, _, _) = guarded(failing(fails("http_400", Ran::Yes, Verdict::Permanent)));
    let first = start(&service, pay("k")).await;
    let waiter = start(&service, pay("k")).await;
    let first = first.await.unwrap().unwrap_err();
    let errors =
        [first, waiter.await.unwrap().unwrap_err(), call(&service, pay("k")).await.unwrap_err()];
    let tools: Vec<*const Failure> = errors
        .iter()
        .map(|error| {
            assert!(error.is::<SharedFailure>());
            assert!(error.source().unwrap().is::<FailureInfo>());
            std::ptr::from_ref(find::<Failure>(&**error).unwrap())
        })
        .collect();
    assert!(tools.iter().all(|tool| *tool == tools[0]));
}

#[tokio::test(start_paused = true)]
async fn a_retriable_failure_is_replayed_unless_the_caller_asks_for_best_effort() {
    let harmless = || pay("k").effect(Effect::Idempotent);
    let failure = told("http_503", Ran::Yes, Verdict::TRANSIENT);
    let (service, _, asked) = guarded(failing(fails("http_503", Ran::Yes, Verdict::TRANSIENT)));
    assert_eq!(refusal(call(&service, harmless()).await), failure);
    assert_eq!(refusal(call(&service, harmless()).await), failure);
    assert_eq!(asked.calls(), 1);

    // Of many that ask, one claims.
    let mut tasks = Vec::new();
    for _ in 0..10 {
        tasks.push(start(&service, best_effort(harmless())).await);
    }
    let mut ends = Vec::new();
    for task in tasks {
        ends.push(task.await.unwrap());
    }
    let (answers, markers): (Vec<_>, Vec<_>) = ends.into_iter().partition(Result::is_ok);
    assert_eq!(answers.into_iter().map(answer).collect::<Vec<_>>(), [1]);
    for marker in markers {
        assert_eq!(refusal(marker).0, "idempotency_in_flight");
    }
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_mutating_call_that_ran_is_not_run_again_for_whoever_asks_for_best_effort() {
    for ran in [Ran::Yes, Ran::Unknown] {
        let failure = told("http_503", ran, Verdict::TRANSIENT);
        let (service, _, asked) = guarded(failing(fails("http_503", ran, Verdict::TRANSIENT)));
        assert_eq!(refusal(call(&service, pay("k")).await), failure);
        for _ in 0..3 {
            call(&service, best_effort(pay("k"))).await.unwrap_err();
        }
        assert_eq!(asked.calls(), 1, "{ran:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_of_a_call_that_never_ran_bars_nobody() {
    let open = told("circuit_open", Ran::No, Verdict::TRANSIENT);
    let (service, records, asked) =
        guarded(failing(fails("circuit_open", Ran::No, Verdict::TRANSIENT)));
    let first = start(&service, pay("k")).await;
    let waiter = start(&service, pay("k")).await;
    // Those who waited share the failure: one refusal must not become one attempt for each.
    assert_eq!(refusal(first.await.unwrap()), open);
    assert_eq!(refusal(waiter.await.unwrap()), open);
    assert_eq!(asked.calls(), 1);

    assert_eq!(answer(call(&service, pay("k")).await), 1);
    let record = records.record(&key_of(&pay("k"))).unwrap();
    assert_eq!(record.execution.unwrap().attempt_count, 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_cancelled_before_it_ran_may_be_claimed_again() {
    let (service, _, asked) = guarded(failing(fails("cancelled", Ran::No, Verdict::Cancelled)));
    let cancelled = told("cancelled", Ran::No, Verdict::Cancelled);
    assert_eq!(refusal(call(&service, pay("k")).await), cancelled);
    assert_eq!(answer(call(&service, pay("k")).await), 1);
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_a_response_reports_is_replayed_as_that_response() {
    let mut error = ToolError::new("bad_amount", "the amount must be positive");
    (error.verdict, error.ran) = (Some(Verdict::Permanent), Ran::Yes);
    let log = Arc::new(Log::default());
    let layer = IdempotencyLayer::builder().observer(log.observer()).build().unwrap();
    let (service, _, asked) =
        guarded_by(&layer, failing(Step::Ok(ToolOutcome::failure(error.clone()))));
    assert_eq!(call(&service, pay("k")).await.unwrap().error(), Some(&error));
    let replayed = call(&service, pay("k")).await.unwrap();
    assert_eq!(replayed.error(), Some(&error));
    assert_eq!(replayed.replay().unwrap().matched_on, MatchedOn::Completed);
    assert_eq!(log.take(), [r#"pay Replayed { matched: Completed, state: "failed" }"#]);
    assert_eq!(asked.calls(), 1);
}

/// The tool's own refusal after it ran is no word that it did nothing.
#[tokio::test(start_paused = true)]
async fn a_mutating_call_that_failed_after_it_ran_keeps_its_key_as_a_success_does() {
    let (service, _, asked) = guarded(failing(fails("denied", Ran::Yes, Verdict::Permanent)));
    for _ in 0..2 {
        assert_eq!(refusal(call(&service, pay("k")).await).0, "denied");
        pass(HOUR).await;
    }
    assert_eq!(asked.calls(), 1);
    pass(22 * HOUR).await;
    assert_eq!(answer(call(&service, pay("k")).await), 1);
}
