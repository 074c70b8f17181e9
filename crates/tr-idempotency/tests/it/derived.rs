//! Calls without a key of their own.
use crate::support::*;
use std::time::Duration;
use tr_core::{CallParts, Params, Ran, ToolCall, Verdict};
use tr_idempotency::{DerivedKeys, IdempotencyLayer};
use tr_testkit::tool::{Scripted, Step};

fn layer(from: DerivedKeys) -> IdempotencyLayer {
    IdempotencyLayer::builder().derived_keys(from).build().unwrap()
}

fn in_step(turn: &str, step: &str) -> ToolCall {
    let mut parts = CallParts::new("pay", Params::empty_object());
    parts.context.session = Some("s".into());
    (parts.turn, parts.step) = (Some(turn.into()), Some(step.into()));
    parts.into()
}

#[tokio::test(start_paused = true)]
async fn a_deliberate_repeat_runs_and_leaves_no_record() {
    let (service, records, asked) = guarded(counting(SECOND));
    assert_eq!(answer(call(&service, unkeyed("{}")).await), 0);
    assert_eq!(answer(call(&service, unkeyed("{}")).await), 1);
    let both = [start(&service, unkeyed("{}")).await, start(&service, unkeyed("{}")).await];
    for one in both {
        assert!(!one.await.unwrap().unwrap().from_cache());
    }
    assert_eq!((asked.calls(), records.counts().records), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_picks_up_the_call_that_was_cut_off_while_it_runs() {
    let (service, records, asked) = guarded(counting(10 * SECOND));
    start(&service, unkeyed("{}")).await.abort();
    settle().await;
    let joined = start(&service, unkeyed("{}")).await;
    // It is attended again: a third one is deliberate.
    let third = start(&service, unkeyed("{}")).await;
    assert_eq!(answer(joined.await.unwrap()), 0);
    assert_eq!(answer(third.await.unwrap()), 1);
    assert_eq!(answer(call(&service, unkeyed("{}")).await), 2, "the answer was given once");
    assert_eq!((asked.calls(), records.counts().records), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_picks_up_the_call_that_was_cut_off_within_a_minute_of_its_end() {
    for (after, runs) in [(59 * SECOND, 1), (60 * SECOND, 2)] {
        let (service, _, asked) = guarded(counting(10 * SECOND));
        start(&service, unkeyed("{}")).await.abort();
        pass(10 * SECOND + after).await;
        let outcome = call(&service, unkeyed("{}")).await.unwrap();
        assert_eq!(outcome.from_cache(), runs == 1, "after {after:?}");
        assert_eq!(asked.calls(), runs);
        assert_eq!(answer(call(&service, unkeyed("{}")).await), runs as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn cut_off_again_the_answer_waits_for_the_next() {
    let (service, _, asked) = guarded(counting(10 * SECOND));
    start(&service, unkeyed("{}")).await.abort();
    settle().await;
    start(&service, unkeyed("{}")).await.abort();
    settle().await;
    assert_eq!(answer(call(&service, unkeyed("{}")).await), 0);
    assert_eq!(asked.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_call_that_is_cut_off_is_driven_to_its_end_too() {
    let (service, records, asked) = guarded(counting(10 * SECOND));
    let first = start(&service, unkeyed("{}")).await;
    start(&service, unkeyed("{}")).await.abort();
    assert_eq!(answer(first.await.unwrap()), 0);
    settle().await;
    assert_eq!((asked.completed(), asked.cancelled()), (2, 0));
    assert_eq!(records.counts().records, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_off_and_lost_is_not_run_again_within_the_grace() {
    let tool: Tool = Scripted::by(|n, _| match n {
        0 => Step::after(SECOND, fails("timeout", Ran::Unknown, Verdict::TRANSIENT)),
        _ => Step::Ok(number(n)),
    });
    let (service, _, _) = guarded(tool);
    start(&service, unkeyed("{}")).await.abort();
    pass(2 * SECOND).await;
    assert_eq!(refusal(call(&service, unkeyed("{}")).await).0, "outcome_unknown");
    pass(MINUTE).await;
    assert_eq!(answer(call(&service, unkeyed("{}")).await), 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_answers_its_repeats_for_the_whole_day() {
    let (service, _, asked) = guarded(counting(SECOND));
    assert_eq!(answer(call(&service, in_step("t", "1")).await), 0);
    pass(23 * HOUR).await;
    assert_eq!(answer(call(&service, in_step("t", "1")).await), 0);
    assert_eq!(answer(call(&service, in_step("t", "2")).await), 1);
    assert_eq!(answer(call(&service, in_step("u", "1")).await), 2);
    assert_eq!(asked.calls(), 3);

    let (service, _, asked) = guarded_by(&layer(DerivedKeys::CutOff), counting(SECOND));
    for n in 0..2 {
        assert_eq!(answer(call(&service, in_step("t", "1")).await), n);
    }
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_answers_every_repeat() {
    let (service, _, asked) = guarded_by(&layer(DerivedKeys::Session), counting(SECOND));
    for _ in 0..2 {
        assert_eq!(answer(call(&service, in_step("t", "1")).await), 0);
        assert_eq!(answer(call(&service, in_step("u", "2")).await), 0);
        pass(HOUR).await;
    }
    assert_eq!(answer(call(&service, unkeyed(r#"{"x":1}"#)).await), 1);
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn off_derives_nothing() {
    let (service, records, asked) = guarded_by(&layer(DerivedKeys::Off), counting(Duration::ZERO));
    for n in 0..2 {
        assert_eq!(answer(call(&service, in_step("t", "1")).await), n);
    }
    assert_eq!((asked.calls(), records.counts().records), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn params_that_no_key_can_be_derived_from_run_without_one() {
    let (service, records, asked) = guarded(counting(SECOND));
    // A lone surrogate has no canonical form.
    for n in 0..2 {
        assert_eq!(answer(call(&service, unkeyed(r#"{"x":"\ud83d"}"#)).await), n);
    }
    assert_eq!((asked.calls(), records.counts().records), (2, 0));
    // With a key of the caller's they cannot be compared, so the call is refused.
    for params in [r#"{"x":"\ud83d"}"#, r#"{"a":1,"a":2}"#] {
        let refused = told("invalid_envelope", Ran::No, Verdict::Permanent);
        assert_eq!(refusal(call(&service, with_params("k", params)).await), refused);
    }
    assert_eq!((asked.calls(), records.counts().records), (2, 0));
}
