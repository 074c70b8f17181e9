//! Calls without a key of their own.
use crate::support::*;
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};
use tower::ServiceExt as _;
use tr_core::{BoxError, CallParts, Params, Ran, ToolCall, ToolOutcome, Verdict};
use tr_idempotency::{DerivedKeys, IdempotencyLayer, store::Memory};
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

/// A call that has been asked for and is not looked at again until it is awaited.
async fn slow_caller(
    service: &Guarded,
) -> Pin<Box<impl Future<Output = Result<ToolOutcome, BoxError>> + use<>>> {
    let mut call = Box::pin(service.clone().oneshot(unkeyed("{}")));
    assert!(poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await.is_pending());
    call
}

/// Keys of cut-off calls stay in their process, so a store makes no difference.
fn layers() -> [IdempotencyLayer; 2] {
    let with_store = IdempotencyLayer::builder().store(Memory::new());
    [layer(DerivedKeys::CutOff), with_store.derived_keys(DerivedKeys::CutOff).build().unwrap()]
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_cut_off_call_is_given_to_one_even_if_that_one_is_slow_to_take_it() {
    for layer in layers() {
        let (service, records, asked) = guarded_by(&layer, counting(10 * SECOND));
        start(&service, unkeyed("{}")).await.abort();
        settle().await;
        let joined = slow_caller(&service).await;
        pass(11 * SECOND).await;
        // The answer lies ready for the one that joined: this one is deliberate.
        assert_eq!(answer(call(&service, unkeyed("{}")).await), 1);
        let joined = joined.await.unwrap();
        assert!(joined.from_cache());
        assert_eq!(answer(Ok(joined)), 0);
        assert_eq!(answer(call(&service, unkeyed("{}")).await), 2, "the answer was given once");
        assert_eq!((asked.calls(), records.counts().records), (3, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_not_taken_waits_for_the_next() {
    for layer in layers() {
        let (service, records, asked) = guarded_by(&layer, counting(10 * SECOND));
        start(&service, unkeyed("{}")).await.abort();
        settle().await;
        let joined = slow_caller(&service).await;
        pass(11 * SECOND).await;
        drop(joined);
        assert_eq!(answer(call(&service, unkeyed("{}")).await), 0);
        assert_eq!(answer(call(&service, unkeyed("{}")).await), 1);
        assert_eq!((asked.calls(), records.counts().records), (2, 0));
    }
}

/// Who takes its answer late takes nothing away from a later call with the same params.
#[tokio::test(start_paused = true)]
async fn who_is_late_spends_its_own_answer_only() {
    for layer in layers() {
        let (service, records, asked) = guarded_by(&layer, counting(10 * SECOND));
        start(&service, unkeyed("{}")).await.abort();
        settle().await;
        let joined = slow_caller(&service).await;
        // No caller joins it within the grace period, and then another call is cut off.
        pass(2 * MINUTE).await;
        records.sweep();
        start(&service, unkeyed("{}")).await.abort();
        pass(11 * SECOND).await;
        assert_eq!(answer(joined.await), 0);
        assert_eq!(answer(call(&service, unkeyed("{}")).await), 1, "the second call's answer");
        assert_eq!((asked.calls(), records.counts().records), (2, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn that_nobody_knows_is_told_to_all_who_ask_within_the_grace() {
    for layer in layers() {
        let tool = Scripted::by(|n, _| match n {
            0 => Step::after(10 * SECOND, fails("timeout", Ran::Unknown, Verdict::TRANSIENT)),
            _ => Step::Ok(number(n)),
        });
        let (service, ..) = guarded_by(&layer, tool);
        start(&service, unkeyed("{}")).await.abort();
        settle().await;
        let joined = slow_caller(&service).await;
        pass(11 * SECOND).await;
        assert_eq!(refusal(call(&service, unkeyed("{}")).await).0, "outcome_unknown");
        assert_eq!(refusal(joined.await).0, "timeout");
        assert_eq!(refusal(call(&service, unkeyed("{}")).await).0, "outcome_unknown");
        pass(MINUTE).await;
        assert_eq!(answer(call(&service, unkeyed("{}")).await), 1);
    }
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
