//! Records that are encrypted: what is in the store, and what becomes of calls whose records cannot
//! be opened.
use crate::support::*;
use tr_core::{Ran, ToolOutcome, Verdict, causes};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    Filter, IdempotencyLayer, Resolution, StoreHandle,
    protocol::{Again, State, Ttls},
    store::{
        ClaimRequest, Claimed, End, Memory, Query, RecordStore, SealingKey, StoreErrorKind, Stored,
    },
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

/// What a reader of the store finds, in the order of the claims.
async fn found(records: &Memory) -> Vec<Stored> {
    let mut found = records.list(&Query::ALL, 9, false).await.unwrap().records;
    found.sort_by_key(|stored| stored.record.token.epoch);
    found
}

/// The answer that a record holds.
fn body(stored: &Stored) -> Vec<u8> {
    match &stored.record.state {
        State::Done(body) => body.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn who_reads_the_store_reads_no_answer_and_no_caller() {
    let asked = || pay("k").session("session of Ann").actor("ann@example.org");
    let (key_asked, digest) = (key_of(&asked()), asked().digest().unwrap());
    for (sealed, shows) in [(None, true), (Some(key(1)), false)] {
        let records = Memory::new();
        let (service, handle, _) = process(&records, sealed, telling());
        service_answers(&service, asked()).await;
        let stored = found(&records).await.remove(0);
        for (bytes, secret) in [
            (&body(&stored)[..], SECRET.as_bytes()),
            (&stored.notes, b"ann@example.org"),
            (stored.session.as_deref().unwrap().as_bytes(), b"session of Ann"),
            // A guess at the order, or the amount, cannot be checked against it.
            (stored.key.as_ref(), key_asked.as_ref()),
            (stored.record.digest.as_ref(), digest.as_ref()),
        ] {
            let is_shown = bytes.windows(secret.len()).any(|part| part == secret);
            assert_eq!(is_shown, shows, "{}", String::from_utf8_lossy(secret));
        }
        // Who has the key reads all of it, and finds it by its key, its session, or a part of its key.
        let record = handle.record(&key_asked).await.unwrap().unwrap();
        assert_eq!(record.request.session_key, "session of Ann");
        assert_eq!(record.key, key_asked.to_string());
        assert_eq!(record.request.params_digest, digest.to_string());
        let listed = handle.beginning(&record.key[..12], 2).await.unwrap().records;
        assert_eq!((listed.len(), &listed[0].key), (1, &record.key));
        let other = if record.key.starts_with('0') { "1" } else { "0" };
        assert!(handle.beginning(other, 2).await.unwrap().records.is_empty());
        assert_eq!(handle.flush(Filter::Session("session of Ann")).await.unwrap(), 1);
    }
}

async fn service_answers(service: &Guarded, asked: tr_core::ToolCall) {
    let outcome = call(service, asked).await.unwrap();
    assert_eq!(outcome.content().unwrap().get(), format!("{SECRET:?}"));
}

#[tokio::test(start_paused = true)]
async fn a_store_refuses_every_key_but_the_one_it_was_written_with() {
    let same_number = || SealingKey::new(1, [9; 32]);
    for (written, now, why) in [
        (Some(key(1)), None, "its records are encrypted, and no key was given"),
        (Some(key(1)), Some(key(2)), "with the key of number 1, which was not given"),
        (Some(key(1)), Some(same_number()), "with another key than the one given"),
        (None, Some(key(1)), "its records are not encrypted, and a key was given"),
    ] {
        let records = Memory::new();
        let (service, ..) = process(&records, written, telling());
        service_answers(&service, pay("k")).await;
        let before = found(&records).await;

        let (stranger, handle, asked) = process(&records, now, telling());
        for name in ["k", "new"] {
            let error = call(&stranger, pay(name)).await.unwrap_err();
            assert!(causes(&*error).any(|it| it.to_string().contains(why)), "{error:?}");
            let refused = told("store_unavailable", Ran::No, Verdict::Permanent);
            assert_eq!(refusal(Err(error)), refused);
        }
        assert_eq!(asked.calls(), 0);
        for error in [
            handle.check_key().await.unwrap_err(),
            handle.records(10).await.unwrap_err(),
            handle.clear(&key_of(&pay("k"))).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Refused);
            assert!(error.to_string().contains(why), "{error}");
        }
        let seen = |records: &[Stored]| records.iter().map(Stored::seen).collect::<Vec<_>>();
        assert_eq!(seen(&found(&records).await), seen(&before), "nothing was changed");
        // Who has the right key is answered as before.
        service_answers(&service, pay("k")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_mark_was_lost_is_not_taken_for_a_new_one() {
    let records = Memory::new();
    let (service, ..) = process(&records, None, telling());
    service_answers(&service, pay("k")).await;
    assert_eq!(records.mark(b"plain", b"").await.unwrap(), b"");
    let (_, sealed, _) = process(&records, Some(key(1)), telling());
    let error = sealed.check_key().await.unwrap_err();
    assert!(error.to_string().contains("do not say whether they are encrypted"), "{error}");

    // The process that wrote it marks it again.
    let records = Memory::new();
    let (service, running, _) = process(&records, Some(key(1)), telling());
    service_answers(&service, pay("k")).await;
    let mark = records.mark(b"", b"").await.unwrap();
    records.mark(&mark, b"").await.unwrap();
    running.sweep().await.unwrap();
    let (service, again, asked) = process(&records, Some(key(1)), telling());
    again.check_key().await.unwrap();
    service_answers(&service, pay("k")).await;
    assert_eq!(asked.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn over_a_change_of_keys_nothing_is_run_again() {
    let records = Memory::new();
    let (old, ..) = process(&records, Some(key(1)), telling());
    service_answers(&old, pay("old")).await;

    let (new, _, asked) = process(&records, Some(key(2).opens(1, [1; 32])), telling());
    let outcome = call(&new, pay("old")).await.unwrap();
    assert!(outcome.from_cache() && outcome.content().unwrap().get().contains(SECRET));
    service_answers(&new, pay("new")).await;
    assert_eq!(asked.calls(), 1);
    // Who has the old key only is not told, and runs nothing; and cannot start any more.
    assert_eq!(refusal(call(&old, pay("new")).await).0, "record_unreadable");
    let (_, handle, _) = process(&records, Some(key(1)), telling());
    let error = handle.check_key().await.unwrap_err();
    assert!(error.to_string().contains("with the key of number 2"), "{error}");
    // Once the records of the old key have expired, the new one is enough.
    let (latest, _, asked) = process(&records, Some(key(2)), telling());
    service_answers(&latest, pay("new")).await;
    assert_eq!(asked.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_settles_is_sealed_too() {
    let records = Memory::new();
    let losing: Tool = Scripted::by(|_, _| fails("timeout", Ran::Unknown, Verdict::TRANSIENT));
    let (service, handle, asked) = process(&records, Some(key(1)), losing);
    assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
    let paid = ToolOutcome::success(serde_json::json!(SECRET));
    let settled = handle.settle_by(&key_of(&pay("k")), None, Resolution::Done(paid), None).await;
    settled.unwrap().unwrap();
    let bytes = body(&found(&records).await[0]);
    assert!(!bytes.windows(4).any(|part| part == b"4111"));
    service_answers(&service, pay("k")).await;
    assert_eq!(asked.calls(), 1);
}

/// A writer of the store puts a forged response into a sealed store.
#[tokio::test(start_paused = true)]
async fn a_forged_answer_is_not_given_to_callers_of_a_sealed_store() {
    let forging: Tool =
        Scripted::by(|_, _| Step::Ok(ToolOutcome::success(serde_json::json!("ship it"))));
    let (elsewhere, records) = (Memory::new(), Memory::new());
    let (forger, ..) = process(&elsewhere, None, forging);
    call(&forger, pay("k")).await.unwrap();
    let (service, handle, asked) = process(&records, Some(key(1)), telling());
    service_answers(&service, pay("k")).await;
    let forged = found(&elsewhere).await.remove(0);
    let ours = found(&records).await.remove(0);
    put(&records, &ours, forged.record.state, &forged.notes).await;

    let (service, _, later) = process(&records, Some(key(1)), telling());
    let error = call(&service, pay("k")).await.unwrap_err();
    assert_eq!((asked.calls(), later.calls()), (1, 0), "the record may be ours");
    let why = "it is not sealed: another writer";
    assert!(causes(&*error).any(|it| it.to_string().contains(why)), "{error:?}");
    assert_eq!(refusal(Err(error)), told("record_unreadable", Ran::Yes, Verdict::Permanent));
    // Nor are operators told what it says of who asked.
    let record = handle.record(&key_of(&pay("k"))).await.unwrap().unwrap();
    assert_eq!(record.request.actor_id, "");
}

/// The same with answers that are sealed: another call's, and an earlier run's.
#[tokio::test(start_paused = true)]
async fn a_sealed_answer_that_was_moved_is_not_given() {
    let records = Memory::new();
    let (service, ..) = process(&records, Some(key(1)), telling());
    service_answers(&service, pay("a")).await;
    service_answers(&service, pay("b")).await;
    let [a, b] = &found(&records).await[..] else { panic!("two records") };
    assert_eq!(a.record.digest, b.record.digest, "both ask for the same");

    // What `a` was told stands under `b`; then what `b` was told, in a record claimed later.
    for (bytes, why) in [(body(a), "its seal does not verify"), (body(b), "for another run")] {
        put(&records, b, State::Done(bytes), &b.notes).await;

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
        let stored = found(&records).await.remove(0);
        put(&records, &stored, turn(body(&stored)), &stored.notes).await;

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
    }
}

/// Puts a state and notes into a record, in place of what is there.
async fn put(records: &Memory, before: &Stored, state: State<Vec<u8>, Vec<u8>>, notes: &[u8]) {
    let named = before.key;
    assert!(records.clear(&named).await.unwrap());
    let claim = ClaimRequest {
        key: named,
        digest: before.record.digest,
        mutating: true,
        again: false,
        corrects: false,
        owner: 7,
        ttls: Ttls { done: 86_400_000, failed: 86_400_000, inflight: 1_000, unknown: 1_000 },
        tool: before.tool.clone(),
        session: None,
        notes: notes.to_vec(),
    };
    let Claimed::Run(grant) = records.claim(&claim).await.unwrap() else { panic!("it is free") };
    let end = End { state, ttl: 86_400_000 };
    assert!(records.finalize(&named, grant.token, &end).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_did_not_run_is_said_under_a_seal_and_runs() {
    let records = Memory::new();
    let losing: Tool = Scripted::by(|_, _| fails("timeout", Ran::Unknown, Verdict::TRANSIENT));
    let (service, handle, _) = process(&records, Some(key(1)), losing);
    assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
    let named = key_of(&pay("k"));
    handle.settle_by(&named, None, Resolution::DidNotRun, None).await.unwrap().unwrap();
    let stored = found(&records).await.remove(0);
    assert!(matches!(stored.record.state, State::Cancelled(Some(_))), "{stored:?}");
    let (again, _, asked) = process(&records, Some(key(1)), telling());
    service_answers(&again, pay("k")).await;
    assert_eq!(asked.calls(), 1);
}
