//! Looking after records in a store, and cancelling calls.
use crate::{
    faults::{Fault, Faulty},
    support::*,
};
use std::{
    future::{Future, pending},
    sync::{Arc, mpsc},
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};
use tower::service_fn;
use tower_layer::Layer;
use tr_core::{BoxError, Effect, Ran, ToolCall, ToolOutcome, Verdict, find};
use tr_idempotency::{
    Counts, Filter, Handle, IdempotencyLayer, RecordState, Resolution, StoreHandle,
    error::Cancelled, store::Memory,
};
use tr_testkit::tool::{Scripted, Step};

fn over(records: &Memory, tool: Tool) -> (Guarded, StoreHandle<ToolOutcome>, Asked) {
    let layer = IdempotencyLayer::builder().store(records.clone()).build().unwrap();
    let (service, handle, asked) = guarded_by(&layer, tool);
    (service, handle.in_store().unwrap(), asked)
}

/// The first call is lost, the others are answered with their number.
fn losing() -> Tool {
    Scripted::by(|n, _| match n {
        0 => fails("timeout", Ran::Unknown, Verdict::TRANSIENT),
        n => Step::after(SECOND, Step::Ok(number(n))),
    })
}

#[tokio::test(start_paused = true)]
async fn a_record_tells_the_whole_story() {
    let records = Memory::new();
    let tool: Tool = Scripted::by(|n, _| match n {
        0 => Step::after(SECOND, fails("http_503", Ran::Yes, Verdict::TRANSIENT)),
        n => Step::after(2 * SECOND, Step::Ok(number(n))),
    });
    let (service, handle, _) = over(&records, tool);
    let asked =
        || best_effort(pay("k").effect(Effect::Idempotent)).request_id("r-1").tool_call_id("t-1");
    assert_eq!(refusal(call(&service, asked()).await).0, "http_503");
    pass(SECOND).await;
    assert_eq!(answer(call(&service, asked()).await), 1);

    let record = handle.record(&key_of(&pay("k"))).await.unwrap().unwrap();
    assert_eq!((record.state, record.tool.as_str()), (RecordState::Done, "pay"));
    assert_eq!(record.idempotency_key, "k");
    assert_eq!(record.request.session_key, "s");
    assert_eq!(record.request.actor_id, "ada");
    assert_eq!(record.request.request_id, "r-1");
    assert_eq!(record.request.tool_call_id.as_deref(), Some("t-1"));
    assert_eq!(record.ttl_ms, 24 * 3_600_000);
    let runs = record.execution.unwrap();
    assert_eq!(runs.attempt_count, 2);
    let told: Vec<_> = runs
        .attempts
        .iter()
        .map(|run| (run.finished_at_ms - run.started_at_ms, run.status, run.error_code.as_deref()))
        .collect();
    assert_eq!(told, [(1_000, "error", Some("http_503")), (2_000, "success", None)]);
    assert_eq!(record.updated_at_ms - record.created_at_ms, 4_000);
}

#[tokio::test(start_paused = true)]
async fn an_operator_settles_what_is_unknown_for_all_processes() {
    for (how, end) in [(Resolution::Done(number(7)), 7), (Resolution::DidNotRun, 1)] {
        let records = Memory::new();
        let (service, handle, _) = over(&records, losing());
        let key = key_of(&pay("k"));
        assert!(
            handle.settle_by(&key, None, how.clone(), None).await.unwrap().is_err(),
            "there is none"
        );
        assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
        let lost = handle.unknown(10).await.unwrap().records;
        assert_eq!(lost.len(), 1);
        assert_eq!(lost[0].error.as_ref().unwrap().code, "timeout");

        let (_, elsewhere, _) = over(&records, losing());
        let other = Some(lost[0].epoch + 1);
        assert!(elsewhere.settle_by(&key, other, how.clone(), None).await.unwrap().is_err());
        assert!(elsewhere.settle_by(&key, Some(lost[0].epoch), how, None).await.unwrap().is_ok());
        assert_eq!(answer(call(&service, pay("k")).await), end);
        assert!(handle.unknown(10).await.unwrap().records.is_empty());
    }
}

/// The store was away when the call was lost, so its process remembers that by itself.
#[tokio::test(start_paused = true)]
async fn what_an_operator_settles_is_known_where_the_call_was_lost_too() {
    let store = Faulty::new(Memory::new());
    let layer = IdempotencyLayer::builder().store(store.clone()).build().unwrap();
    let (service, front, asked) = guarded_by(&layer, losing());
    store.fail("finalize", Fault::Unreachable, 1);
    assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
    pass(SECOND).await;
    assert_eq!(refusal(call(&service, pay("k")).await).0, "outcome_unknown");
    let settled = Resolution::Done(number(7));
    let settled =
        front.in_store().unwrap().settle_by(&key_of(&pay("k")), None, settled, None).await;
    settled.unwrap().unwrap();
    assert_eq!(answer(call(&service, pay("k")).await), 7);
    assert_eq!(asked.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn records_are_counted_and_flushed_by_session_tool_and_key() {
    let records = Memory::new();
    let (service, handle, asked) = over(&records, counting(SECOND));
    for (key, session) in [("a", "one"), ("b", "one"), ("c", "two")] {
        call(&service, pay(key).session(session)).await.unwrap();
    }
    assert_eq!(handle.records(10).await.unwrap().records.len(), 3);
    assert_eq!(handle.records(2).await.unwrap().records.len(), 2);
    assert_eq!(handle.count(Filter::Session("one")).await.unwrap(), 2);
    assert_eq!(handle.count(Filter::Tool("pa")).await.unwrap(), 3);
    assert_eq!(handle.flush(Filter::Session("one")).await.unwrap(), 2);
    let key = key_of(&pay("c").session("two"));
    assert_eq!(handle.count(Filter::Key(&key)).await.unwrap(), 1);
    assert_eq!(handle.flush(Filter::Key(&key)).await.unwrap(), 1);
    assert_eq!(handle.count(Filter::Tool("")).await.unwrap(), 0);
    call(&service, pay("a").session("one")).await.unwrap();
    assert_eq!(asked.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_hung_call_is_listed_and_cleared() {
    let records = Memory::new();
    let (service, handle, asked) = over(&records, counting(HOUR));
    let hung = start(&service, pay("k")).await;
    assert!(handle.stale(MINUTE, 10).await.unwrap().records.is_empty());
    pass(3 * MINUTE).await;
    let stale = handle.stale(MINUTE, 10).await.unwrap().records;
    assert_eq!(stale[0].state, RecordState::Inflight);
    assert_eq!(handle.flush(Filter::Tool("")).await.unwrap(), 0, "it may run twice");
    assert!(handle.clear(&stale[0].hashed_key().unwrap()).await.unwrap());
    let (other, ..) = over(&records, counting(SECOND));
    assert_eq!(answer(call(&other, pay("k")).await), 0);
    assert!(!hung.await.unwrap().unwrap().recorded(), "its claim is lost");
    assert_eq!(asked.calls(), 1);
}

/// Between the operator's look and the flush another process claims the call.
#[tokio::test(start_paused = true)]
async fn a_flush_of_one_key_spares_a_call_that_is_claimed_meanwhile() {
    let records = Memory::new();
    let tool: Tool = Scripted::by(|n, _| match n {
        0 => fails("http_503", Ran::Yes, Verdict::TRANSIENT),
        _ => Step::after(HOUR, Step::Ok(number(1))),
    });
    let (service, _, asked) = over(&records, tool);
    assert_eq!(refusal(call(&service, pay("k")).await).0, "http_503");

    let far = IdempotencyLayer::builder().store(Faulty::slow(records.clone())).build().unwrap();
    let (_, handle, _) = guarded_by(&far, counting(SECOND));
    let handle = handle.in_store().unwrap();
    handle.check_key().await.unwrap();
    let flush = tokio::spawn(async move { handle.flush(Filter::Key(&key_of(&pay("k")))).await });
    pass(Duration::from_millis(2)).await;
    let running = start(&service, best_effort(pay("k"))).await;
    assert_eq!(asked.calls(), 2);
    flush.await.unwrap().unwrap();

    let (other, ..) = over(&records, counting(SECOND));
    let told = refusal(call(&other, best_effort(pay("k"))).await).0;
    assert_eq!(told, "idempotency_in_flight", "its record is gone, and it would run twice");
    assert!(running.await.unwrap().unwrap().recorded());
}

#[tokio::test(start_paused = true)]
async fn a_hung_call_that_was_cleared_runs_again_in_its_own_process_too() {
    let records = Memory::new();
    let (service, handle, asked) = over(&records, counting(HOUR));
    let hung = start(&service, pay("k")).await;
    assert!(handle.clear(&key_of(&pay("k"))).await.unwrap());
    let again = start(&service, pay("k")).await;
    assert_eq!(asked.calls(), 2, "it waits for the call that was given up");
    assert!(!hung.await.unwrap().unwrap().recorded(), "its claim is lost");
    assert!(again.await.unwrap().unwrap().recorded());
}

#[tokio::test(start_paused = true)]
async fn a_janitor_sweeps_the_store() {
    let records = Memory::new();
    let layer =
        IdempotencyLayer::builder().store(records.clone()).done_ttl(10 * SECOND).build().unwrap();
    let (service, front, _) = guarded_by(&layer, counting(SECOND));
    call(&service, pay("k")).await.unwrap();
    let janitor = front.spawn_janitor();
    pass(2 * MINUTE).await;
    assert_eq!(front.in_store().unwrap().sweep().await.unwrap(), 0, "it is gone already");
    drop(janitor);
}

#[tokio::test(start_paused = true)]
async fn a_store_says_what_it_cannot_promise() {
    let (_, handle, _) = over(&Memory::new(), counting(SECOND));
    let warnings = handle.check().await.unwrap();
    assert!(warnings[0].contains("lost when this process ends"), "{warnings:?}");
}

/// Its lease has ended before it could start, and the store does not say whether it still has it.
#[tokio::test(start_paused = true)]
async fn who_asks_once_more_before_it_starts_can_be_cancelled() {
    let store = Faulty::slow(Memory::new());
    let layer = IdempotencyLayer::builder().store(store.clone());
    let layer = layer.inflight_ttl(Duration::from_millis(1)).build().unwrap();
    let (service, front, asked) = guarded_by(&layer, counting(SECOND));
    store.fail("renew", Fault::Silent, usize::MAX);
    let caller = start(&service, pay("k")).await;
    pass(Duration::from_millis(100)).await;
    assert_eq!(store.calls("renew"), 1, "it asks");
    assert!(front.cancel(&key_of(&pay("k"))));
    let told = refusal(caller.await.unwrap());
    assert_eq!(told, ("cancelled".into(), Ran::No, Verdict::Cancelled));
    assert_eq!(asked.calls(), 0);
}

/// Cancels the call of this key in mid-run, and before it starts.
async fn cancels(make: impl Fn(Tool) -> (Guarded, Handle<ToolOutcome>, Asked)) {
    let key = key_of(&pay("k"));
    let cancelled = |ran| told("cancelled", ran, Verdict::Cancelled);

    // In mid-run, with its caller, a waiter, and without both.
    let (service, front, asked) = make(counting(HOUR));
    assert!(!front.cancel(&key), "there is none");
    let caller = start(&service, pay("k")).await;
    let waiter = start(&service, pay("k")).await;
    assert!(front.cancel(&key));
    let error = caller.await.unwrap().unwrap_err();
    assert!(find::<Cancelled>(&*error).is_some());
    assert_eq!(refusal(Err(error)), cancelled(Ran::Unknown));
    assert_eq!(refusal(waiter.await.unwrap()), cancelled(Ran::Unknown));
    assert_eq!((asked.calls(), asked.cancelled()), (1, 1));
    assert_eq!(refusal(call(&service, pay("k")).await).0, "outcome_unknown");
    assert!(!front.cancel(&key), "it is over");

    let (service, front, asked) = make(counting(HOUR));
    start(&service, pay("k")).await.abort();
    settle().await;
    assert_eq!((asked.calls(), asked.cancelled()), (1, 0), "it goes on without its caller");
    assert!(front.cancel(&key));
    settle().await;
    assert_eq!((asked.calls(), asked.cancelled()), (1, 1));
    assert_eq!(refusal(call(&service, pay("k")).await).0, "outcome_unknown");

    // A read may have run, too, and runs again.
    let (service, front, asked) = make(Scripted::by(|n, _| match n {
        0 => Step::Hang,
        n => Step::Ok(number(n)),
    }));
    let caller = start(&service, pay("k").effect(Effect::ReadOnly)).await;
    assert!(front.cancel(&key));
    assert_eq!(refusal(caller.await.unwrap()), cancelled(Ran::Unknown));
    assert_eq!(answer(call(&service, pay("k").effect(Effect::ReadOnly)).await), 1);
    assert_eq!(asked.calls(), 2);

    // Before it starts.
    let (service, front, asked) = make(counting(SECOND).capacity(0));
    let caller = start(&service, pay("k")).await;
    assert!(front.cancel(&key));
    assert_eq!(refusal(caller.await.unwrap()), cancelled(Ran::No));
    asked.set_capacity(1);
    assert_eq!(answer(call(&service, pay("k")).await), 0);
    assert_eq!(asked.calls(), 1);
    pass(Duration::from_secs(1)).await;
    let Counts { inflight, unknown, waiters, .. } = front.counts();
    assert_eq!((inflight, unknown, waiters), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_cancelled_by_its_key() {
    cancels(guarded).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_over_a_store_is_cancelled_by_its_key() {
    cancels(|tool| {
        let layer = IdempotencyLayer::builder().store(Memory::new()).build().unwrap();
        guarded_by(&layer, tool)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_another_process_can_be_cancelled() {
    let records = Memory::new();
    let (a, ..) = over(&records, counting(HOUR));
    let layer = IdempotencyLayer::builder().store(records.clone()).build().unwrap();
    let (b, front, ran_b) = guarded_by(&layer, counting(SECOND));
    let first = start(&a, pay("k")).await;
    let waits = [start(&b, pay("k")).await, start(&b, pay("k")).await];
    assert!(front.cancel(&key_of(&pay("k"))));
    for waiter in waits {
        let perhaps = told("cancelled", Ran::Unknown, Verdict::Cancelled);
        assert_eq!(refusal(waiter.await.unwrap()), perhaps, "the other process runs on");
    }
    assert_eq!(answer(first.await.unwrap()), 0);
    assert_eq!((ran_b.calls(), front.counts()), (0, Counts::default()));
}

/// A waker that reads the records when it is dropped.
struct Curious(Handle<ToolOutcome>);

impl Wake for Curious {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Curious {
    fn drop(&mut self) {
        let _ = self.0.counts();
    }
}

#[test]
fn a_task_that_is_not_to_be_woken_any_more_is_let_go_outside_the_lock() {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let layer = IdempotencyLayer::builder().build().unwrap();
        let (records, key) = (layer.handle(), key_of(&pay("k")));
        let tool = service_fn(|_: ToolCall| pending::<Result<ToolOutcome, BoxError>>());
        let mut call = Box::pin(tower::Service::call(&mut layer.layer(tool), pay("k")));
        let mut poll = |waker: &Waker| call.as_mut().poll(&mut Context::from_waker(waker));
        let curious = || Waker::from(Arc::new(Curious(records.clone())));
        for _ in 0..2 {
            assert!(poll(&curious()).is_pending());
        }
        // Another call in its place, and a look at all who can be cancelled.
        assert!(records.clear(&key));
        let tool = service_fn(|_: ToolCall| pending::<Result<ToolOutcome, BoxError>>());
        let mut other = Box::pin(tower::Service::call(&mut layer.layer(tool), pay("k")));
        assert!(other.as_mut().poll(&mut Context::from_waker(&curious())).is_pending());
        assert!(records.cancel(&key));
        tell.send(records.counts().inflight).unwrap();
    });
    assert_eq!(told.recv_timeout(10 * SECOND), Ok(1), "it waits for itself");
}
