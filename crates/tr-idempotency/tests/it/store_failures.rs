//! Stores that fail, lose replies, hang, and processes that sleep.
use crate::{
    faults::{Fault, Faulty},
    support::*,
};
use std::time::Duration;
use tr_core::{Effect, Ran, ToolOutcome, Verdict, find};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    Counts, Handle, IdempotencyLayer,
    error::{RecordUnreadable, StoreUnavailable},
    protocol::Phase,
    store::{Memory, RecordStore, StoreError, WhenStoreFails},
};
use tr_testkit::tool::{Scripted, Step};

struct World {
    records: Memory,
    faulty: Faulty,
    service: Guarded,
    front: Handle<ToolOutcome>,
    asked: Asked,
}

fn world(tool: Tool) -> World {
    let records = Memory::new();
    let faulty = Faulty::new(records.clone());
    let layer = IdempotencyLayer::builder().store(faulty.clone()).build().unwrap();
    let (service, front, asked) = guarded_by(&layer, tool);
    World { records, faulty, service, front, asked }
}

impl World {
    async fn phase(&self, key: &str) -> Option<Phase> {
        let stored = self.records.read(&key_of(&pay(key))).await.unwrap();
        stored.map(|stored| stored.record.state.phase())
    }
}

#[tokio::test(start_paused = true)]
async fn without_its_store_a_mutating_call_does_not_run_and_says_so() {
    let w = world(counting(SECOND));
    w.faulty.down();
    let error = call(&w.service, pay("k")).await.unwrap_err();
    assert!(find::<StoreUnavailable>(&*error).is_some());
    assert!(find::<StoreError>(&*error).is_some(), "it leads to the cause");
    assert_eq!(refusal(Err(error)), told("store_unavailable", Ran::No, Verdict::TRANSIENT));
    assert_eq!((w.asked.calls(), w.faulty.calls("claim")), (0, 3));
    pass(MINUTE).await;
    assert_eq!(w.faulty.calls("release"), 0, "nothing was granted");
    w.faulty.up();
    assert_eq!(answer(call(&w.service, pay("k")).await), 0);
}

/// A file that another process keeps locked is read all the same.
#[tokio::test(start_paused = true)]
async fn where_a_claim_cannot_be_written_the_record_says_whether_the_tool_ran() {
    let steps = [fails("timeout", Ran::Unknown, Verdict::TRANSIENT), Step::Ok(number(1))];
    for (step, ran) in steps.into_iter().zip([Ran::Unknown, Ran::Yes]) {
        let w = world(Scripted::script([step]));
        let _ = call(&w.service, pay("k")).await;
        w.faulty.fail("claim", Fault::Unreachable, usize::MAX);
        assert_eq!(refusal(call(&w.service, pay("k")).await).1, ran);
        assert_eq!(refusal(call(&w.service, pay("other")).await).1, Ran::No);
        assert_eq!(w.asked.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn without_its_store_any_other_call_runs_once_in_this_process_unrecorded() {
    for effect in [Effect::ReadOnly, Effect::Idempotent] {
        let w = world(counting(SECOND));
        w.faulty.down();
        let first = start(&w.service, pay("k").effect(effect)).await;
        let second = start(&w.service, pay("k").effect(effect)).await;
        let first = first.await.unwrap().unwrap();
        assert!(!first.recorded());
        assert_eq!(answer(Ok(first)), 0);
        assert_eq!(answer(second.await.unwrap()), 0);
        assert_eq!((w.asked.calls(), w.front.counts()), (1, Counts::default()));
    }
}

#[tokio::test(start_paused = true)]
async fn without_its_store_what_was_in_memory_is_given_again() {
    let faulty = Faulty::new(Memory::new());
    let layer = IdempotencyLayer::builder()
        .store(faulty.clone())
        .replay_from_memory(MINUTE)
        .build()
        .unwrap();
    let (service, _, asked) = guarded_by(&layer, counting(SECOND));
    assert_eq!(answer(call(&service, pay("m")).await), 0);
    faulty.down();
    assert_eq!(answer(call(&service, pay("m")).await), 0);
    assert_eq!(answer(call(&service, read(pay("r"))).await), 1);
    assert_eq!(answer(call(&service, read(pay("r"))).await), 1);
    assert_eq!(asked.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_a_call_without_its_store_can_be_set() {
    let faulty = Faulty::new(Memory::new());
    let layer = IdempotencyLayer::builder()
        .store(faulty.clone())
        .when_store_fails(Effect::ReadOnly, WhenStoreFails::Refuse)
        .when_store_fails(Effect::Mutating, WhenStoreFails::Run)
        .build()
        .unwrap();
    let (service, ..) = guarded_by(&layer, counting(SECOND));
    faulty.down();
    assert_eq!(refusal(call(&service, read(pay("r"))).await).0, "store_unavailable");
    assert_eq!(answer(call(&service, pay("m")).await), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_reply_got_lost_is_sent_again_and_recognized() {
    for fault in [Fault::ReplyLost, Fault::Hangs] {
        let w = world(counting(SECOND));
        w.faulty.fail("claim", fault, 2);
        assert_eq!(answer(call(&w.service, pay("k")).await), 0);
        assert_eq!((w.asked.calls(), w.faulty.calls("claim")), (1, 3));
        assert_eq!(w.phase("k").await, Some(Phase::Done));
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_stays_in_doubt_is_given_back() {
    for fault in [Fault::ReplyLost, Fault::Hangs] {
        let w = world(counting(SECOND));
        w.faulty.fail("claim", fault, 3);
        assert_eq!(refusal(call(&w.service, pay("k")).await).0, "store_unavailable");
        assert_eq!(w.asked.calls(), 0);
        pass(SECOND).await;
        assert_eq!(w.phase("k").await, None, "it was in force, and is released");
        assert_eq!(answer(call(&w.service, pay("k")).await), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_even_be_given_back_bars_mutating_calls_only() {
    let w = world(counting(SECOND));
    w.faulty.fail("claim", Fault::ReplyLost, 3);
    w.faulty.fail("release", Fault::Unreachable, usize::MAX);
    assert_eq!(refusal(call(&w.service, pay("k")).await).0, "store_unavailable");
    pass(2 * MINUTE).await;
    assert_eq!(w.phase("k").await, Some(Phase::Unknown));
    assert_eq!(refusal(call(&w.service, pay("k")).await).0, "outcome_unknown");
    assert_eq!(w.asked.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_while_its_claim_is_under_way_a_call_gives_it_back() {
    for fault in [None, Some(Fault::Hangs), Some(Fault::ReplyLost), Some(Fault::Silent)] {
        let w = world(counting(SECOND).capacity(0));
        if let Some(fault) = fault {
            w.faulty.fail("claim", fault, 1);
        }
        let caller = start(&w.service, pay("k")).await;
        caller.abort();
        pass(10 * SECOND).await;
        assert_eq!(w.phase("k").await, None, "{fault:?}");
        assert_eq!((w.asked.calls(), w.front.counts()), (0, Counts::default()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_recorded_is_given_and_recorded_later() {
    for fault in [Fault::Unreachable, Fault::Hangs, Fault::Silent] {
        let w = world(counting(SECOND));
        w.faulty.fail("finalize", fault, 5);
        let first = call(&w.service, pay("k")).await.unwrap();
        assert!(!first.recorded(), "{fault:?}");
        let (store, key) = (w.front.in_store().unwrap(), pay("k").id().unwrap().unwrap().key);
        assert!(store.is_unrecorded(&key));
        // Until then this process knows it.
        assert_eq!(answer(call(&w.service, pay("k")).await), 0);
        assert_eq!(w.faulty.calls("claim"), 1);
        pass(MINUTE).await;
        assert_eq!(w.phase("k").await, Some(Phase::Done));
        assert!(!store.is_unrecorded(&key));
        assert_eq!((answer(Ok(first)), w.asked.calls()), (0, 1));
    }
}

/// A store that is away for a moment is waited for, so that the answer is not ahead of its record.
#[tokio::test(start_paused = true)]
async fn a_result_is_recorded_before_it_is_given_if_the_store_comes_back_in_time() {
    for fault in [Fault::Unreachable, Fault::Hangs, Fault::Silent] {
        let w = world(counting(SECOND));
        w.faulty.fail("finalize", fault, 2);
        assert!(call(&w.service, pay("k")).await.unwrap().recorded(), "{fault:?}");
        assert_eq!((w.phase("k").await, w.faulty.calls("finalize")), (Some(Phase::Done), 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalize_whose_reply_got_lost_is_recognized() {
    let w = world(counting(SECOND));
    w.faulty.fail("finalize", Fault::ReplyLost, 1);
    assert!(call(&w.service, pay("k")).await.unwrap().recorded());
    assert_eq!((w.phase("k").await, w.faulty.calls("finalize")), (Some(Phase::Done), 2));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_while_the_end_is_recorded_loses_nothing() {
    let w = world(counting(SECOND));
    w.faulty.fail("finalize", Fault::Silent, 1);
    let caller = start(&w.service, pay("k")).await;
    pass(SECOND + Duration::from_millis(500)).await;
    caller.abort();
    pass(MINUTE).await;
    assert_eq!((w.phase("k").await, w.asked.calls()), (Some(Phase::Done), 1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_is_tried_again_before_it_ends() {
    let w = world(counting(10 * MINUTE));
    w.faulty.fail("renew", Fault::Unreachable, 3);
    let first = start(&w.service, pay("k")).await;
    pass(2 * MINUTE + SECOND).await;
    assert_eq!(w.phase("k").await, Some(Phase::Inflight));
    assert!(first.await.unwrap().unwrap().recorded());
}

/// The store was down for longer than the lease; no other owner has claimed the call meanwhile.
#[tokio::test(start_paused = true)]
async fn a_lease_lost_in_mid_run_is_recorded_late_as_the_protocol_allows() {
    let w = world(counting(10 * MINUTE));
    w.faulty.fail("renew", Fault::Unreachable, usize::MAX);
    let first = start(&w.service, pay("k")).await;
    pass(3 * MINUTE).await;
    assert_eq!(w.phase("k").await, Some(Phase::Unknown));
    assert!(first.await.unwrap().unwrap().recorded());
    assert_eq!(w.phase("k").await, Some(Phase::Done));
}

/// PEERS: the lease ends, another claims and runs, the first ends late and must not delete that.
#[tokio::test(start_paused = true)]
async fn a_late_end_of_a_lost_claim_is_given_to_its_caller_and_changes_nothing() {
    let w = world(counting(10 * MINUTE));
    w.faulty.fail("renew", Fault::Unreachable, usize::MAX);
    let first = start(&w.service, read(pay("k"))).await;
    pass(3 * MINUTE).await;
    let other = IdempotencyLayer::builder().store(w.records.clone()).build().unwrap();
    let seven: Tool = Scripted::by(|_, _| Step::after(SECOND, Step::Ok(number(7))));
    let (other, _, ran_other) = guarded_by(&other, seven);
    assert_eq!(answer(call(&other, read(pay("k"))).await), 7);
    let first = first.await.unwrap().unwrap();
    assert!(!first.recorded());
    assert_eq!(answer(Ok(first)), 0);
    assert_eq!(answer(call(&other, read(pay("k"))).await), 7);
    assert_eq!(ran_other.calls(), 1);
}

/// The process sleeps between the grant and the start: it must not take its own expired lease for
/// a valid one.
#[tokio::test(start_paused = true)]
async fn who_slept_through_its_lease_asks_before_it_starts() {
    let w = world(counting(SECOND).capacity(0));
    let mut slept = Box::pin(tower::ServiceExt::oneshot(w.service.clone(), pay("k")));
    let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::future::Future::poll(slept.as_mut(), cx).is_pending());
    assert_eq!(w.phase("k").await, Some(Phase::Inflight));
    pass(3 * MINUTE).await;
    assert_eq!(w.phase("k").await, Some(Phase::Unknown));
    // Meanwhile an operator settles that it did not run, and another caller runs it.
    let key = key_of(&pay("k"));
    let end = tr_idempotency::store::End {
        state: tr_idempotency::protocol::State::Cancelled(None),
        ttl: 300_000,
    };
    assert!(w.records.settle(&key, None, &end).await.unwrap());
    let other = IdempotencyLayer::builder().store(w.records.clone()).build().unwrap();
    let (other, _, ran_other) = guarded_by(&other, counting(SECOND));
    assert_eq!(answer(call(&other, pay("k")).await), 0);
    w.asked.set_capacity(10);
    let replayed = slept.await.unwrap();
    assert!(replayed.from_cache());
    assert_eq!((w.asked.calls(), ran_other.calls()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn who_slept_and_finds_its_claim_untouched_starts() {
    let w = world(counting(SECOND).capacity(0));
    let mut slept = Box::pin(tower::ServiceExt::oneshot(w.service.clone(), pay("k")));
    let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::future::Future::poll(slept.as_mut(), cx).is_pending());
    pass(3 * MINUTE).await;
    w.asked.set_capacity(10);
    assert_eq!(answer(slept.await), 0);
    assert_eq!((w.asked.calls(), w.phase("k").await), (1, Some(Phase::Done)));
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_record_is_never_a_reason_to_run_a_mutating_call() {
    let w = world(counting(SECOND));
    w.faulty.fail("claim", Fault::Unreadable, usize::MAX);
    let error = call(&w.service, pay("k")).await.unwrap_err();
    assert!(find::<RecordUnreadable>(&*error).is_some());
    assert!(tr_core::causes(&*error).any(|it| it.to_string().contains("update this program")));
    assert_eq!(refusal(Err(error)), told("record_unreadable", Ran::Unknown, Verdict::Permanent));
    assert_eq!((w.asked.calls(), w.faulty.calls("claim")), (0, 1));
    assert_eq!(answer(call(&w.service, read(pay("k"))).await), 0);

    // Not even where it would run without its store: there is a record.
    let layer = IdempotencyLayer::builder()
        .store(w.faulty.clone())
        .when_store_fails(Effect::Mutating, WhenStoreFails::Run)
        .build()
        .unwrap();
    let (service, _, asked) = guarded_by(&layer, counting(SECOND));
    assert_eq!(refusal(call(&service, pay("k")).await).0, "record_unreadable");
    assert_eq!(asked.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_or_newer_answer_says_that_the_tool_ran() {
    for (byte, words) in [(0, "update this program"), (20, "checksum")] {
        let w = world(counting(SECOND));
        assert_eq!(answer(call(&w.service, pay("k")).await), 0);
        let key = key_of(&pay("k"));
        let stored = w.records.read(&key).await.unwrap().unwrap();
        let tr_idempotency::protocol::State::Done(mut body) = stored.record.state else { panic!() };
        body[byte] ^= 0x40;
        // As a newer version, or a failing disk, would have left it.
        w.records.clear(&key).await.unwrap();
        let claim = tr_idempotency::store::ClaimRequest {
            key,
            digest: stored.record.digest,
            mutating: true,
            again: false,
            corrects: false,
            owner: 1,
            ttls: tr_idempotency::protocol::Ttls {
                done: 60_000,
                failed: 1,
                inflight: 60_000,
                unknown: 1,
            },
            tool: stored.tool,
            session: stored.session,
            notes: stored.notes,
        };
        let tr_idempotency::store::Claimed::Run(grant) = w.records.claim(&claim).await.unwrap()
        else {
            panic!("it was cleared")
        };
        let state = tr_idempotency::protocol::State::Done(body);
        let end = tr_idempotency::store::End { state, ttl: 60_000 };
        assert!(w.records.finalize(&key, grant.token, &end).await.unwrap());

        let error = call(&w.service, pay("k")).await.unwrap_err();
        assert!(tr_core::causes(&*error).any(|it| it.to_string().contains(words)), "{error:?}");
        assert_eq!(refusal(Err(error)), told("record_unreadable", Ran::Yes, Verdict::Permanent));
        assert_eq!(w.asked.calls(), 1);
    }
}
