//! Calls of unknown outcome.
use crate::support::*;
use std::{sync::Arc, time::Duration};
use tr_core::{Effect, Ran, ToolOutcome, Verdict, find};
use tr_idempotency::{IdempotencyLayer, RecordState, Resolution, error::OutcomeUnknown};
use tr_testkit::tool::{Failure, Scripted, Step};

fn unknown() -> (String, Ran, Verdict) {
    told("outcome_unknown", Ran::Unknown, Verdict::Permanent)
}

/// Loses the first call so, and answers the others with their number.
fn losing(step: Step<ToolOutcome>) -> Tool {
    Scripted::by(move |n, _| {
        let end = if n == 0 { step.clone() } else { Step::Ok(number(n)) };
        Step::after(SECOND, end)
    })
}

#[tokio::test(start_paused = true)]
async fn a_mutating_call_that_may_have_run_is_not_run_again_for_a_day() {
    let timeout = told("timeout", Ran::Unknown, Verdict::TRANSIENT);
    let log = Arc::new(Log::default());
    let layer = IdempotencyLayer::builder().observer(log.observer()).build().unwrap();
    let (service, records, asked) =
        guarded_by(&layer, losing(fails("timeout", Ran::Unknown, Verdict::TRANSIENT)));
    assert_eq!(refusal(call(&service, pay("k")).await), timeout);

    for again in [pay("k"), best_effort(pay("k")), read(pay("k"))] {
        let error = call(&service, again).await.unwrap_err();
        assert!(find::<OutcomeUnknown>(&*error).is_some());
        assert!(find::<Failure>(&*error).is_some(), "what is known is told");
    }
    assert_eq!(log.take(), [r#"pay Replayed { matched: Completed, state: "unknown" }"#; 3]);
    assert_eq!(records.unknown().len(), 1);
    pass(24 * HOUR - Duration::from_millis(1)).await;
    assert_eq!(refusal(call(&service, pay("k")).await), unknown());
    assert_eq!(asked.calls(), 1);
    pass(Duration::from_millis(1)).await;
    assert_eq!(answer(call(&service, pay("k")).await), 1);
}

#[tokio::test(start_paused = true)]
async fn any_other_call_that_may_have_run_has_failed() {
    for effect in [Effect::ReadOnly, Effect::Idempotent] {
        let (service, records, asked) =
            guarded(losing(fails("timeout", Ran::Unknown, Verdict::TRANSIENT)));
        let _ = call(&service, pay("k").effect(effect)).await;
        let record = records.record(&key_of(&pay("k"))).unwrap();
        assert_eq!(record.state, RecordState::Failed);
        assert_eq!(refusal(call(&service, pay("k").effect(effect)).await).0, "timeout");
        assert_eq!(answer(call(&service, best_effort(pay("k").effect(effect))).await), 1);
        assert_eq!(asked.calls(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_call_that_is_not_mutating_is_claimed_again_at_a_higher_epoch() {
    let (service, records, asked) = guarded(losing(Step::Panic));
    assert!(start(&service, read(pay("k"))).await.await.unwrap_err().is_panic());
    let lost = records.record(&key_of(&pay("k"))).unwrap();
    assert_eq!(lost.state, RecordState::Unknown);

    assert_eq!(answer(call(&service, read(pay("k"))).await), 1);
    let done = records.record(&key_of(&pay("k"))).unwrap();
    assert!(done.epoch > lost.epoch);
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn settled_as_done_it_is_replayed() {
    let (service, records, asked) = guarded(losing(Step::Panic));
    let _ = start(&service, pay("k")).await.await;
    let key = key_of(&pay("k"));
    assert_eq!(refusal(call(&service, pay("k")).await), unknown());

    records.settle(&key, Resolution::Done(number(7))).unwrap();
    assert_eq!(answer(call(&service, pay("k")).await), 7);
    assert!(records.settle(&key, Resolution::DidNotRun).is_err(), "it is known now");
    assert_eq!(asked.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_found_out_of_one_run_settles_no_later_one() {
    let (service, records, asked) = guarded(Scripted::by(|_, _| Step::Panic));
    let (key, mut epochs) = (key_of(&pay("k")), Vec::new());
    for _ in 0..2 {
        let _ = start(&service, pay("k")).await.await;
        epochs.push(records.epoch(&key).unwrap());
        assert_eq!(records.record(&key).unwrap().epoch, epochs[epochs.len() - 1]);
        assert!(records.settle_run(&key, epochs[0] + 1_000, Resolution::DidNotRun).is_err());
        if epochs.len() == 1 {
            records.settle_run(&key, epochs[0], Resolution::DidNotRun).unwrap();
        }
    }
    assert!(records.settle_run(&key, epochs[0], Resolution::DidNotRun).is_err());
    assert_eq!(refusal(call(&service, pay("k")).await), unknown(), "it may have run");
    records.settle_run(&key, epochs[1], Resolution::DidNotRun).unwrap();
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn settled_as_not_run_or_cleared_it_runs() {
    let key = key_of(&pay("k"));
    let (service, records, _) = guarded(losing(Step::Panic));
    let _ = start(&service, pay("k")).await.await;
    records.settle(&key, Resolution::DidNotRun).unwrap();
    assert_eq!(records.record(&key).unwrap().state, RecordState::Cancelled);
    assert_eq!(answer(call(&service, pay("k")).await), 1);

    let (service, records, _) = guarded(losing(Step::Panic));
    let _ = start(&service, pay("k")).await.await;
    assert!(records.clear(&key));
    assert!(!records.clear(&key));
    assert_eq!(answer(call(&service, pay("k")).await), 1);
    assert!(records.settle(&key, Resolution::DidNotRun).is_err());
}

#[tokio::test(start_paused = true)]
async fn clearing_a_call_in_flight_tells_who_waits_and_refuses_its_late_end() {
    let (service, records, asked) = guarded(counting(10 * SECOND));
    let first = start(&service, pay("k")).await;
    let waiter = start(&service, pay("k")).await;
    assert!(records.clear(&key_of(&pay("k"))));
    assert_eq!(refusal(waiter.await.unwrap()), unknown());

    pass(SECOND).await;
    let second = start(&service, pay("k")).await;
    let late = first.await.unwrap().unwrap();
    assert!(!late.recorded(), "another has the key now");
    assert_eq!(records.record(&key_of(&pay("k"))).unwrap().state, RecordState::Inflight);
    assert_eq!(answer(second.await.unwrap()), 1);
    assert_eq!(answer(call(&service, pay("k")).await), 1);
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_kept_is_given_and_said_not_to_be() {
    let stream = || {
        let mut outcome = number(3);
        outcome.parts_mut().chunk = Some(tr_core::Chunk { index: 0, last: false });
        outcome
    };
    let tool = || Scripted::by(move |_, _| Step::after(SECOND, Step::Ok(stream())));

    let (service, _, asked) = guarded(tool());
    let first = start(&service, pay("k")).await;
    let waiter = start(&service, pay("k")).await;
    assert!(!first.await.unwrap().unwrap().recorded());
    let gone = told("answer_not_kept", Ran::Yes, Verdict::Permanent);
    assert_eq!(refusal(waiter.await.unwrap()), gone);
    assert_eq!(refusal(call(&service, pay("k")).await), gone);
    assert_eq!(asked.calls(), 1, "a mutating tool does not run again for it");

    let (service, records, asked) = guarded(tool());
    let first = start(&service, read(pay("k"))).await;
    let waiter = start(&service, read(pay("k"))).await;
    assert!(!first.await.unwrap().unwrap().recorded());
    assert!(waiter.await.unwrap().is_ok());
    assert_eq!((asked.calls(), records.counts().records), (2, 0));
}
