//! Records that are encrypted: what is in the store, and what becomes of calls whose records cannot
//! be opened.
use crate::support::*;
use std::time::{Duration, UNIX_EPOCH};
use tr_core::{Effect, Ran, ToolOutcome, Verdict, causes};
use tr_idempotency::{
    Filter, IdempotencyLayer, Resolution, StoreHandle,
    protocol::{Again, State, Ttls},
    store::{ClaimRequest, Claimed, End, Memory, RecordStore, SealingKey, Stored},
};
use tr_testkit::tool::{Scripted, Step};

const SECRET: &str = "4111 1111 1111 1111";

/// A process that seals with this key, or not at all.
fn process(
    records: &Memory,
    key: Option<SealingKey>,
    tool: Tool,
) -> (Guarded, StoreHandle<ToolOutcome>, Asked) {
    let mut builder = IdempotencyLayer::builder().store(records.clone());
    if let Some(key) = key {
        builder = builder.sealed_with(key);
    }
    let (service, handle, asked) = guarded_by(&builder.build().unwrap(), tool);
    (service, handle.in_store().unwrap(), asked)
}

fn key(number: u8) -> SealingKey {
    SealingKey::new(number.into(), [number; 32])
}

/// Answers with a secret.
fn telling() -> Tool {
    Scripted::by(|_, _| Step::Ok(ToolOutcome::success(serde_json::json!(SECRET))))
}

/// What a reader of the store finds under this key.
async fn found(records: &Memory, key: &str) -> Vec<u8> {
    let stored = records.read(&key_of(&pay(key))).await.unwrap().unwrap();
    let State::Done(body) = stored.record.state else { panic!("{:?}", stored.record.state) };
    [&body[..], &stored.notes, stored.session.unwrap().as_bytes()].concat()
}

#[tokio::test(start_paused = true)]
async fn who_reads_the_store_reads_no_answer_and_no_caller() {
    let records = Memory::new();
    let asked = || pay("k").session("session of Ann").actor("ann@example.org");
    for (sealed, shows) in [(None, true), (Some(key(1)), false)] {
        let (service, handle, _) = process(&records, sealed, telling());
        let key = key_of(&asked());
        service_answers(&service, asked()).await;
        let stored = records.read(&key).await.unwrap().unwrap();
        let State::Done(body) = &stored.record.state else { panic!("it is done") };
        for (bytes, secret) in [
            (&body[..], SECRET),
            (&stored.notes, "ann@example.org"),
            (stored.session.as_deref().unwrap().as_bytes(), "session of Ann"),
        ] {
            let is_shown = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert_eq!(is_shown, shows, "{secret}");
        }
        // Who has the key reads all of it, and finds it by its session.
        let record = handle.record(&key).await.unwrap().unwrap();
        assert_eq!(record.request.session_key, "session of Ann");
        assert_eq!(handle.flush(Filter::Session("session of Ann")).await.unwrap(), 1);
    }
}

async fn service_answers(service: &Guarded, asked: tr_core::ToolCall) {
    let outcome = call(service, asked).await.unwrap();
    assert_eq!(outcome.content().unwrap().get(), format!("{SECRET:?}"));
}

#[tokio::test(start_paused = true)]
async fn a_record_sealed_with_another_key_is_no_reason_to_run_a_mutating_call() {
    let others = [
        (None, "sealed with a key that this program does not have"),
        (Some(key(2)), "sealed with a key that this program does not have"),
        // The number is the same, the key is not.
        (Some(SealingKey::new(1, [9; 32])), "its seal does not verify"),
    ];
    for (other, why) in others {
        let records = Memory::new();
        let (service, ..) = process(&records, Some(key(1)), telling());
        service_answers(&service, pay("k")).await;
        let before = found(&records, "k").await;

        let (stranger, handle, asked) = process(&records, other, telling());
        let error = call(&stranger, pay("k")).await.unwrap_err();
        assert!(causes(&*error).any(|it| it.to_string().contains(why)), "{error:?}");
        assert_eq!(refusal(Err(error)), told("record_unreadable", Ran::Yes, Verdict::Permanent));
        assert_eq!(asked.calls(), 0);
        // A read may run, and leaves the record as it is.
        let read = pay("k").effect(Effect::ReadOnly);
        assert!(!call(&stranger, read).await.unwrap().recorded());
        assert_eq!(found(&records, "k").await, before);
        // Operators see that there is one, and can forget it.
        assert_eq!(handle.records(10).await.unwrap().records.len(), 1);
        assert!(handle.clear(&key_of(&pay("k"))).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn over_a_change_of_keys_nothing_is_run_again() {
    let records = Memory::new();
    let (plain, ..) = process(&records, None, telling());
    service_answers(&plain, pay("plain")).await;
    let (old, ..) = process(&records, Some(key(1)), telling());
    service_answers(&old, pay("old")).await;

    let tomorrow = key(2).opens_plain_until(UNIX_EPOCH + Duration::from_secs(u32::MAX.into()));
    let (new, _, asked) = process(&records, Some(tomorrow.opens(1, [1; 32])), telling());
    for name in ["plain", "old"] {
        let outcome = call(&new, pay(name)).await.unwrap();
        assert!(outcome.from_cache() && outcome.content().unwrap().get().contains(SECRET));
    }
    service_answers(&new, pay("new")).await;
    assert_eq!(asked.calls(), 1);
    // Who has the old key only is not told, and runs nothing.
    assert_eq!(refusal(call(&old, pay("new")).await).0, "record_unreadable");
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_settles_is_sealed_too() {
    let records = Memory::new();
    let losing: Tool = Scripted::by(|_, _| fails("timeout", Ran::Unknown, Verdict::TRANSIENT));
    let (service, handle, asked) = process(&records, Some(key(1)), losing);
    assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
    let paid = ToolOutcome::success(serde_json::json!(SECRET));
    let settled = handle.settle(&key_of(&pay("k")), None, Resolution::Done(paid)).await;
    settled.unwrap().unwrap();
    let bytes = found(&records, "k").await;
    assert!(!bytes.windows(4).any(|part| part == b"4111"));
    service_answers(&service, pay("k")).await;
    assert_eq!(asked.calls(), 1);
}

/// A writer of the store puts a forged response into a sealed store.
#[tokio::test(start_paused = true)]
async fn a_forged_answer_is_not_given_to_callers_of_a_sealed_store() {
    let forging: Tool =
        Scripted::by(|_, _| Step::Ok(ToolOutcome::success(serde_json::json!("ship it"))));
    for (until, opens) in [(None, false), (Some(0), false), (Some(u32::MAX), true)] {
        let records = Memory::new();
        let (forger, ..) = process(&records, None, forging.clone());
        call(&forger, pay("k")).await.unwrap();

        let mut seal = key(1);
        if let Some(until) = until {
            seal = seal.opens_plain_until(UNIX_EPOCH + Duration::from_secs(until.into()));
        }
        let (service, handle, asked) = process(&records, Some(seal), telling());
        let answer = call(&service, pay("k")).await;
        assert_eq!(asked.calls(), 0, "the record may be ours: it bars a second run");
        if opens {
            assert!(answer.unwrap().from_cache());
            continue;
        }
        let error = answer.unwrap_err();
        let why = "it is not sealed: another writer";
        assert!(causes(&*error).any(|it| it.to_string().contains(why)), "{error:?}");
        assert_eq!(refusal(Err(error)), told("record_unreadable", Ran::Yes, Verdict::Permanent));
        // Nor are operators told what it says of who asked.
        let record = handle.record(&key_of(&pay("k"))).await.unwrap().unwrap();
        assert_eq!(record.request.actor_id, "");
    }
}

/// The same with answers that are sealed: another call's, and an earlier run's.
#[tokio::test(start_paused = true)]
async fn a_sealed_answer_that_was_moved_is_not_given() {
    let records = Memory::new();
    let (service, ..) = process(&records, Some(key(1)), telling());
    service_answers(&service, pay("a")).await;
    service_answers(&service, pay("b")).await;
    let body = |stored: &Stored| match &stored.record.state {
        State::Done(body) => body.clone(),
        other => panic!("{other:?}"),
    };
    let read = async |name: &str| records.read(&key_of(&pay(name))).await.unwrap().unwrap();
    let (a, b) = (read("a").await, read("b").await);
    assert_eq!(a.record.digest, b.record.digest, "both ask for the same");

    // What `a` was told stands under `b`; then what `b` was told, in a record claimed later.
    for (bytes, why) in [(body(&a), "its seal does not verify"), (body(&b), "for another run")] {
        let named = key_of(&pay("b"));
        assert!(records.clear(&named).await.unwrap());
        let claim = ClaimRequest {
            key: named,
            digest: b.record.digest,
            mutating: true,
            again: false,
            owner: 7,
            ttls: Ttls { done: 86_400_000, failed: 1, inflight: 1_000, unknown: 1_000 },
            tool: b.tool.clone(),
            session: None,
            notes: b.notes.clone(),
        };
        let Claimed::Run(grant) = records.claim(&claim).await.unwrap() else {
            panic!("it is free")
        };
        let end = End { state: State::Done(bytes), ttl: 86_400_000 };
        assert!(records.finalise(&named, grant.token, &end).await.unwrap());

        let (victim, _, asked) = process(&records, Some(key(1)), telling());
        let error = call(&victim, pay("b")).await.unwrap_err();
        assert!(causes(&*error).any(|it| it.to_string().contains(why)), "{why}: {error:?}");
        assert_eq!(refusal(Err(error)).0, "record_unreadable");
        assert_eq!(asked.calls(), 0);
    }
}

/// A writer of the store turns a record into one that lets its call run again.
#[tokio::test(start_paused = true)]
async fn a_record_that_was_turned_does_not_let_a_mutating_call_run_again() {
    type Turn = fn(Vec<u8>) -> State<Vec<u8>, Vec<u8>>;
    let turns: [(Turn, &str); 3] = [
        (|_| State::Cancelled(None), "it is not sealed"),
        (|body| State::Cancelled(Some(body)), "for another state"),
        (|body| State::Failed(body, Again::Freely), "for another state"),
    ];
    for (turn, why) in turns {
        let records = Memory::new();
        let (service, ..) = process(&records, Some(key(1)), telling());
        service_answers(&service, pay("k")).await;
        let named = key_of(&pay("k"));
        let stored = records.read(&named).await.unwrap().unwrap();
        let State::Done(body) = stored.record.state else { panic!("it is done") };
        put(&records, turn(body)).await;

        let (victim, handle, asked) = process(&records, Some(key(1)), telling());
        let error = call(&victim, pay("k")).await.unwrap_err();
        assert!(causes(&*error).any(|it| it.to_string().contains(why)), "{why}: {error:?}");
        assert_eq!(
            refusal(Err(error)),
            told("record_unreadable", Ran::Unknown, Verdict::Permanent)
        );
        // Nor the next one.
        assert_eq!(refusal(call(&victim, pay("k")).await).0, "outcome_unknown");
        assert_eq!(asked.calls(), 0);
        assert_eq!(handle.unknown(10).await.unwrap().records.len(), 1);
        // Without a seal the forgery cannot be detected, and the store is trusted.
        put(&records, State::Cancelled(None)).await;
        let (plain, _, asked) = process(&records, None, telling());
        service_answers(&plain, pay("k")).await;
        assert_eq!(asked.calls(), 1);
    }
}

/// Puts a state under the key `k`, in place of what is there.
async fn put(records: &Memory, state: State<Vec<u8>, Vec<u8>>) {
    let named = key_of(&pay("k"));
    let before = records.read(&named).await.unwrap().unwrap();
    assert!(records.clear(&named).await.unwrap());
    let claim = ClaimRequest {
        key: named,
        digest: before.record.digest,
        mutating: true,
        again: false,
        owner: 7,
        ttls: Ttls { done: 86_400_000, failed: 86_400_000, inflight: 1_000, unknown: 1_000 },
        tool: before.tool,
        session: None,
        notes: before.notes,
    };
    let Claimed::Run(grant) = records.claim(&claim).await.unwrap() else { panic!("it is free") };
    let end = End { state, ttl: 86_400_000 };
    assert!(records.finalise(&named, grant.token, &end).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_did_not_run_is_said_under_a_seal_and_runs() {
    let records = Memory::new();
    let losing: Tool = Scripted::by(|_, _| fails("timeout", Ran::Unknown, Verdict::TRANSIENT));
    let (service, handle, _) = process(&records, Some(key(1)), losing);
    assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
    let named = key_of(&pay("k"));
    handle.settle(&named, None, Resolution::DidNotRun).await.unwrap().unwrap();
    let stored = records.read(&named).await.unwrap().unwrap();
    assert!(matches!(stored.record.state, State::Cancelled(Some(_))), "{stored:?}");
    let (again, _, asked) = process(&records, Some(key(1)), telling());
    service_answers(&again, pay("k")).await;
    assert_eq!(asked.calls(), 1);
}
