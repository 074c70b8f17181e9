//! One key, other params, in every state.
use crate::support::*;
use std::{sync::Arc, time::Duration};
use tr_core::{Ran, ToolOutcome, Verdict};
use tr_idempotency::{ConflictPolicy, Handle, IdempotencyLayer, RecordState};
use tr_testkit::tool::{Scripted, Step};

/// A record in each state, by its name; the tool's further calls answer with their number.
fn states() -> [(RecordState, Step<ToolOutcome>); 5] {
    [
        (RecordState::Inflight, Step::Hang),
        (RecordState::Done, Step::Ok(number(0))),
        (RecordState::Failed, fails("http_400", Ran::Yes, Verdict::Permanent)),
        (RecordState::Cancelled, fails("cancelled", Ran::No, Verdict::Cancelled)),
        (RecordState::Unknown, fails("timeout", Ran::Unknown, Verdict::TRANSIENT)),
    ]
}

async fn with_record(
    layer: &IdempotencyLayer,
    state: RecordState,
    step: Step<ToolOutcome>,
) -> (Guarded, Handle<ToolOutcome>, Asked) {
    let tool = Scripted::by(move |n, _| if n == 0 { step.clone() } else { Step::Ok(number(n)) });
    let (service, records, asked) = guarded_by(layer, tool);
    drop(start(&service, pay("k")).await);
    let record = records.records().pop().unwrap();
    assert_eq!(record.state, state);
    (service, records, asked)
}

#[tokio::test(start_paused = true)]
async fn tr_04_other_params_are_rejected_at_once_in_every_state() {
    for (state, step) in states() {
        let log = Arc::new(Log::default());
        let layer = IdempotencyLayer::builder().observer(log.observer()).build().unwrap();
        let (service, records, asked) = with_record(&layer, state, step).await;
        let before = records.records();
        let started = tokio::time::Instant::now();

        for other in [with_params("k", r#"{"amount":6}"#), best_effort(with_params("k", "{}"))] {
            let rejected = refusal(call(&service, other).await);
            assert_eq!(rejected, told("idempotency_conflict", Ran::No, Verdict::Permanent));
            assert_eq!(log.take(), ["pay KeyConflict"], "{state:?}");
        }
        assert_eq!(started.elapsed(), Duration::ZERO);
        assert_eq!(asked.calls(), 1, "{state:?}");
        assert_eq!(records.records(), before, "{state:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tr_04_other_params_are_another_call_in_every_state() {
    for (state, step) in states() {
        let layer = IdempotencyLayer::builder().conflicts(ConflictPolicy::Independent);
        let (service, records, asked) = with_record(&layer.build().unwrap(), state, step).await;

        assert_eq!(answer(call(&service, with_params("k", r#"{"amount":6}"#)).await), 1);
        assert_eq!(answer(call(&service, with_params("k", r#"{"amount":6}"#)).await), 1);
        assert_eq!(asked.calls(), 2, "{state:?}");
        assert_eq!(records.counts().records, 2, "{state:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tr_04_equal_params_in_another_spelling_are_the_same_call() {
    let (service, _, asked) = guarded(counting(Duration::ZERO));
    assert_eq!(answer(call(&service, with_params("k", r#"{"a":1,"b":[]}"#)).await), 0);
    let again = with_params("k", r#"{ "b": [], "a": 1.0, "retryCount": 2 }"#);
    assert_eq!(answer(call(&service, again).await), 0);
    assert_eq!(asked.calls(), 1);
}
