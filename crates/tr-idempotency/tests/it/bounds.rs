//! The store's bounds, and what it forgets.
use crate::support::*;
use std::{sync::Arc, time::Duration};
use tr_core::{
    DedupeScope, Effect, Ran, ToolError, ToolManifest, ToolOutcome, Verdict, canonical::Key,
    internal::CoarseInstant,
};
use tr_idempotency::{
    Filter, Handle, IdempotencyLayer, Resolution, error::AnswerNotKept, store::Memory,
};
use tr_testkit::tool::{Scripted, Step};

fn layer(capacity: usize) -> IdempotencyLayer {
    IdempotencyLayer::builder().capacity(capacity).build().unwrap()
}

/// A tool whose answers have so many bytes.
fn sized(bytes: usize) -> Tool {
    Scripted::by(move |_, _| Step::Ok(ToolOutcome::success(serde_json::json!("x".repeat(bytes)))))
}

/// Responses are dropped, records never are: no call runs twice for it.
#[tokio::test(start_paused = true)]
async fn answers_are_bounded_by_bytes_and_records_never_go_for_it() {
    let layer = IdempotencyLayer::builder()
        .max_record_bytes(100_000)
        .max_kept_bytes(1_000_000)
        .capacity(10_000)
        .build()
        .unwrap();
    let (service, records, asked) = guarded_by(&layer, sized(50_000));
    for n in 0..1_000 {
        let outcome = call(&service, pay(&format!("k{n}"))).await.unwrap();
        assert_eq!(outcome.content().unwrap().get().len(), 50_002, "the caller gets it");
    }
    assert_eq!((records.counts().records, asked.calls()), (1_000, 1_000));
    let not_kept = told("answer_not_kept", Ran::Yes, Verdict::Permanent);
    let mut kept = 0;
    for n in 0..1_000 {
        match call(&service, pay(&format!("k{n}"))).await {
            Ok(outcome) => {
                kept += 1;
                assert_eq!(outcome.content().unwrap().get().len(), 50_002);
            }
            Err(error) => assert_eq!(refusal(Err(error)), not_kept),
        }
    }
    assert!((1..=1_000_000 / 50_002).contains(&kept), "{kept}");
    assert_eq!(asked.calls(), 1_000, "none of them ran again");
    // What goes gives its room back.
    assert_eq!(records.flush(Filter::Tool("pay")), 1_000);
    for n in 0..kept {
        call(&service, pay(&format!("k{n}"))).await.unwrap();
        assert!(call(&service, pay(&format!("k{n}"))).await.unwrap().from_cache());
    }
}

/// Waiters of the running call get the response; later duplicates get the error that it ran.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_is_shared_and_not_kept() {
    for effect in [Effect::Mutating, Effect::ReadOnly] {
        let layer = IdempotencyLayer::builder().max_record_bytes(1_000).build().unwrap();
        let big: Tool = Scripted::by(|_, _| {
            let answer = ToolOutcome::success(serde_json::json!("x".repeat(2_000)));
            Step::after(SECOND, Step::Ok(answer))
        });
        let (service, records, asked) = guarded_by(&layer, big);
        let first = start(&service, pay("k").effect(effect)).await;
        let second = start(&service, pay("k").effect(effect)).await;
        for (end, recorded) in [(first.await, false), (second.await, true)] {
            let outcome = end.unwrap().unwrap();
            assert_eq!(outcome.content().unwrap().get().len(), 2_002);
            assert_eq!(outcome.recorded(), recorded);
        }
        let error = call(&service, pay("k").effect(effect)).await.unwrap_err();
        assert!(error.is::<AnswerNotKept>());
        assert_eq!((asked.calls(), records.counts().records), (1, 1));
    }
}

/// How an answer that came late is told: by whoever knows its size, or not; of the run, or of whatever
/// has its key.
type Settle = fn(&Handle<ToolOutcome>, &Key, u64, ToolOutcome, usize);

const SETTLES: [Settle; 4] = [
    |records, key, epoch, late, size| {
        records.settle_sized(key, Some(epoch), Resolution::Done(late), size).unwrap();
    },
    |records, key, epoch, late, _| {
        records.settle_run(key, epoch, Resolution::Done(late)).unwrap();
    },
    |records, key, _, late, size| {
        records.settle_sized(key, None, Resolution::Done(late), size).unwrap();
    },
    |records, key, _, late, _| records.settle(key, Resolution::Done(late)).unwrap(),
];

#[tokio::test(start_paused = true)]
async fn answers_that_come_late_are_bounded_by_bytes_too() {
    for settle in SETTLES {
        late_answers_are_bounded(settle).await;
    }
}

/// An answer that comes after its call was given up takes as much room as any other.
async fn late_answers_are_bounded(settle: Settle) {
    let layer = IdempotencyLayer::builder()
        .max_record_bytes(10_000)
        .max_kept_bytes(100_000)
        .build()
        .unwrap();
    let losing: Tool = Scripted::by(|_, _| fails("timeout", Ran::Unknown, Verdict::TRANSIENT));
    let (service, records, asked) = guarded_by(&layer, losing);
    for n in 0..101 {
        call(&service, pay(&format!("k{n}"))).await.unwrap_err();
        let size = if n == 0 { 10_001 } else { 9_002 };
        let late = ToolOutcome::success(serde_json::json!("x".repeat(size - 2)));
        let key = key_of(&pay(&format!("k{n}")));
        let epoch = records.epoch(&key).unwrap();
        settle(&records, &key, epoch, late, size);
    }
    let mut kept = 0;
    for n in 0..101 {
        match call(&service, pay(&format!("k{n}"))).await {
            Ok(outcome) => kept += usize::from(outcome.from_cache()),
            Err(error) => assert!(error.is::<AnswerNotKept>(), "{error}"),
        }
    }
    assert!((1..=11).contains(&kept), "{kept}");
    assert_eq!(asked.calls(), 101, "none of them ran again");
    assert!(call(&service, pay("k0")).await.unwrap_err().is::<AnswerNotKept>());
}

/// A failure's own words may be shortened; how the call ended stays.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_too_large_stays_one() {
    let layer = IdempotencyLayer::builder().max_record_bytes(1_000).build().unwrap();
    let failing: Tool = Scripted::by(|_, _| {
        let mut error = ToolError::new("no_seat", "x".repeat(2_000));
        (error.verdict, error.ran) = (Some(Verdict::Permanent), Ran::Yes);
        Step::Ok(ToolOutcome::failure(error))
    });
    let (service, _, asked) = guarded_by(&layer, failing);
    assert!(call(&service, pay("k")).await.unwrap().error().is_some());
    let again = call(&service, pay("k")).await.unwrap();
    let error = again.error().unwrap();
    assert_eq!((&*error.code, error.ran), ("no_seat", Ran::Yes));
    assert_eq!(error.verdict, Some(Verdict::Permanent));
    let marked = "xx… [shortened: the record keeps no more of 2007 bytes]";
    assert!(error.message.ends_with(marked) && error.message.len() < 600, "{}", error.message);
    assert!(again.from_cache());
    assert_eq!(asked.calls(), 1);
}

/// So may those of an error that no response tells of, in the table and in a store.
#[tokio::test(start_paused = true)]
async fn an_error_that_is_too_large_keeps_the_beginning_of_its_words() {
    use tr_core::FailureInfo;
    for in_store in [false, true] {
        for (ran, verdict, code) in [
            (Ran::Yes, Verdict::Permanent, "no_seat"),
            (Ran::Unknown, Verdict::TRANSIENT, "outcome_unknown"),
        ] {
            let layer = IdempotencyLayer::builder().max_record_bytes(1_500);
            let layer = if in_store { layer.store(Memory::new()) } else { layer };
            let layer = layer.build().unwrap();
            let failing: Tool = Scripted::by(move |_, _| {
                Step::err(FailureInfo::new("no_seat", ran, verdict).because("x".repeat(2_000_000)))
            });
            let (service, _, asked) = guarded_by(&layer, failing);
            call(&service, pay("k")).await.unwrap_err();
            let error = call(&service, pay("k")).await.unwrap_err();
            let facts = tr_core::failure_info(&*error).unwrap();
            assert_eq!((facts.code(), facts.ran()), (code, ran));
            let words: Vec<_> = tr_core::causes(&*error).map(ToString::to_string).collect();
            let words = words.join("\n");
            assert!(words.contains("[shortened: the record keeps no more of 2000"), "{words}");
            assert!(words.len() < 2_000, "{}", words.len());
            assert_eq!(asked.calls(), 1);
        }
    }
}

/// 1,000 failures of 2 MB, as errors and as responses, keep less than the limit together.
#[tokio::test(start_paused = true)]
async fn failures_are_bounded_by_bytes_too() {
    let layer = IdempotencyLayer::default();
    let failing: Tool = Scripted::by(|n, _| {
        let text = "x".repeat(if n % 3 == 0 { 900_000 } else { 2_000_000 });
        let mut error = ToolError::new("no_seat", text.as_str());
        (error.verdict, error.ran) = (Some(Verdict::Permanent), Ran::Yes);
        if n % 2 == 0 { Step::err(error) } else { Step::Ok(ToolOutcome::failure(error)) }
    });
    let (service, records, asked) = guarded_by(&layer, failing);
    for n in 0..1_000 {
        let _ = call(&service, pay(&format!("k{n}"))).await;
    }
    let mut kept = 0;
    for n in 0..1_000 {
        let length = match call(&service, pay(&format!("k{n}"))).await {
            Ok(outcome) => outcome.error().unwrap().message.len(),
            Err(error) => error.to_string().len(),
        };
        assert!(length == 900_000 || length < 600, "{length}");
        kept += length;
    }
    // Beside what is counted, each keeps the beginning of its words.
    assert!((10_000_000..65 * 1024 * 1024).contains(&kept), "{kept}");
    assert_eq!((records.counts().records, asked.calls()), (1_000, 1_000));
}

#[tokio::test(start_paused = true)]
async fn the_least_used_settled_record_is_forgotten() {
    let (service, records, _) = guarded_by(&layer(3), counting(Duration::ZERO));
    for key in ["a", "b", "c"] {
        call(&service, pay(key)).await.unwrap();
    }
    assert_eq!(answer(call(&service, pay("a")).await), 0); // used
    call(&service, pay("d")).await.unwrap();
    assert_eq!(records.counts().records, 3);
    assert_eq!(records.record(&key_of(&pay("b"))), None);
    assert_eq!(answer(call(&service, pay("a")).await), 0);
    assert_eq!(answer(call(&service, pay("c")).await), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_and_unknown_mutating_calls_are_never_forgotten() {
    let tool: Tool =
        Scripted::by(|n, call: &tr_core::ToolCall| match call.parts().idempotency.key.as_deref() {
            Some("hang") => Step::after(HOUR, Step::Ok(number(n))),
            Some("lose") => fails("timeout", Ran::Unknown, Verdict::TRANSIENT),
            _ => Step::Ok(number(n)),
        });
    let (service, records, asked) = guarded_by(&layer(3), tool);
    let hanging = start(&service, pay("hang")).await;
    call(&service, pay("lose")).await.unwrap_err();
    for n in 2..100 {
        assert_eq!(answer(call(&service, pay(&format!("k{n}"))).await), n);
    }
    assert_eq!(records.counts().records, 3);
    assert_eq!(refusal(call(&service, pay("lose")).await).0, "outcome_unknown");
    assert_eq!(refusal(call(&service, best_effort(pay("hang"))).await).0, "idempotency_in_flight");
    assert_eq!(answer(hanging.await.unwrap()), 0);
    assert_eq!(asked.calls(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_full_store_refuses_and_recovers() {
    for capacity in [1, 3, 64, 200, 1_000] {
        let (service, records, asked) = guarded_by(&layer(capacity), counting(SECOND));
        let mut tasks = Vec::new();
        for n in 0..capacity {
            tasks.push(tokio::spawn(tower::ServiceExt::oneshot(
                service.clone(),
                pay(&format!("k{n}")),
            )));
        }
        while asked.in_flight() < capacity {
            settle().await;
        }
        // The bound is the store's: no shard refuses while another has room.
        assert_eq!(records.counts().inflight, capacity);
        let full = told("store_full", Ran::No, Verdict::TRANSIENT);
        assert_eq!(refusal(call(&service, pay("one more")).await), full);
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        call(&service, pay("one more")).await.unwrap();
        assert_eq!((records.counts().records, asked.calls()), (capacity, capacity + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn ended_records_are_swept_by_claims_by_hand_and_by_the_janitor() {
    let (service, records, _) = guarded_by(&layer(60), counting(Duration::ZERO));
    for n in 0..50 {
        call(&service, pay(&format!("k{n}"))).await.unwrap();
    }
    pass(24 * HOUR).await;
    for n in 0..50 {
        call(&service, pay(&format!("l{n}"))).await.unwrap();
    }
    assert!(records.counts().records <= 60 && records.counts().records < 100);
    records.sweep();
    assert_eq!(records.counts().records, 50);

    let janitor = records.spawn_janitor();
    pass(24 * HOUR + MINUTE).await;
    assert_eq!(records.counts().records, 0);
    drop(janitor);
}

#[tokio::test(start_paused = true)]
async fn time_passes_with_a_janitor_and_after_it() {
    let (service, records, _) = guarded(counting(Duration::ZERO));
    let janitor = records.spawn_janitor();
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    pass(10 * SECOND + Duration::from_millis(400)).await;
    let age = call(&service, pay("k")).await.unwrap().replay().unwrap().age;
    assert_eq!(age, 10 * SECOND, "to the second");
    pass(24 * HOUR).await;
    assert_eq!(answer(call(&service, pay("k")).await), 1);

    drop(janitor);
    settle().await;
    pass(24 * HOUR + SECOND).await;
    assert_eq!(answer(call(&service, pay("k")).await), 2, "the clock is looked at again");
}

#[tokio::test(start_paused = true)]
async fn a_stamped_call_brings_the_time_along() {
    let (service, _, _) = guarded(counting(Duration::ZERO));
    call(&service, pay("k")).await.unwrap();
    let mut stamped = pay("k");
    let later = tokio::time::Instant::now() + 7 * SECOND;
    stamped.set_stamp(Some(CoarseInstant::at(later.into_std())));
    let age = call(&service, stamped).await.unwrap().replay().unwrap().age;
    assert_eq!(age, 7 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_manifest_sets_its_tools_times() {
    let mut manifest = ToolManifest::new("pay");
    manifest.effect = Some(Effect::Mutating);
    (manifest.ttls.done, manifest.ttls.failed) = (Some(SECOND), Some(2 * SECOND));
    let manifest = Arc::new(manifest);
    let tool: Tool = Scripted::by(|n, _| match n {
        0 => Step::Ok(number(n)),
        1 => fails("http_400", Ran::Yes, Verdict::Permanent),
        _ => Step::Ok(number(n)),
    });
    let (service, _, asked) = guarded(tool);
    let again = || call(&service, pay("k").manifested(manifest.clone()));
    assert_eq!(answer(again().await), 0);
    pass(SECOND).await;
    assert_eq!(refusal(again().await).0, "http_400");
    pass(SECOND).await;
    assert_eq!(refusal(again().await).0, "http_400");
    pass(SECOND).await;
    assert_eq!(answer(again().await), 2);
    assert_eq!(asked.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_global_scope_is_for_tools_that_only_read() {
    let global = |effect, session: &str| {
        let mut call = pay("k").session(session).effect(effect);
        call.parts_mut().idempotency.scope = DedupeScope::Global;
        call
    };
    let (service, records, asked) = guarded(counting(Duration::ZERO));
    for effect in [Effect::Mutating, Effect::Idempotent] {
        let refused = told("invalid_envelope", Ran::No, Verdict::Permanent);
        assert_eq!(refusal(call(&service, global(effect, "s")).await), refused);
    }
    assert_eq!((asked.calls(), records.counts().records), (0, 0));
    for session in ["s", "another"] {
        assert_eq!(answer(call(&service, global(Effect::ReadOnly, session)).await), 0);
    }
}

#[test]
fn build_reports_every_fault() {
    let built = IdempotencyLayer::builder()
        .capacity(0)
        .max_waiters(0)
        .done_ttl(Duration::ZERO)
        .cut_off_grace(Duration::MAX)
        .build();
    let faults = built.unwrap_err();
    assert_eq!(faults.faults().count(), 4);
    assert!(faults.to_string().contains("`capacity` is 0, must be 1 to 16777216"));
}

#[tokio::test(start_paused = true)]
async fn a_record_of_many_runs_tells_of_the_last_ones() {
    let tool: Tool = Scripted::by(|_, _| fails("circuit_open", Ran::No, Verdict::TRANSIENT));
    let (service, records, _) = guarded_by(&layer(3), tool);
    for _ in 0..100 {
        call(&service, pay("k")).await.unwrap_err();
    }
    let execution = records.record(&key_of(&pay("k"))).unwrap().execution.unwrap();
    assert_eq!((execution.attempt_count, execution.attempts.len()), (100, 17));
}
