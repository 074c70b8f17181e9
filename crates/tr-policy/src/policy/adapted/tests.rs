//! What each change answers, and that it leaves the rest alone.
use super::*;
use crate::{Verdict, code};
use std::io;

#[derive(Clone)]
struct Query {
    shard: &'static str,
    writes: bool,
}

const READ: Query = Query { shard: "eu-1", writes: false };
const WRITE: Query = Query { shard: "eu-2", writes: true };

#[test]
fn an_effect_is_declared_for_all_requests_or_for_each() {
    let policy = NamedPolicy::new("database");
    assert_eq!(policy.effect(&READ), Effect::Mutating);
    assert_eq!(policy.read_only().effect(&WRITE), Effect::ReadOnly);
    assert_eq!(policy.read_only().idempotent().effect(&WRITE), Effect::Idempotent);
    let by_query = policy.effect_by(|query: &Query| match query.writes {
        true => Effect::Mutating,
        false => Effect::ReadOnly,
    });
    for (query, effect) in [(READ, Effect::ReadOnly), (WRITE, Effect::Mutating)] {
        assert_eq!(by_query.effect(&query), effect);
        assert_eq!(by_query.info(&query).effect, effect, "events say the same");
        assert!(by_query.is_effect_declared(&query));
    }
}

#[test]
fn what_a_request_calls_names_its_breaker_and_its_events() {
    let policy = NamedPolicy::new("database").key_by(|query: &Query| query.shard).read_only();
    assert_eq!(policy.key(&READ), KeyRef::new("eu-1"));
    assert_eq!(policy.breaker_key(&READ), KeyRef::new("eu-1"));
    let info = policy.info(&READ);
    assert_eq!((info.tool, info.effect), ("eu-1", Effect::ReadOnly));
}

#[test]
fn a_transient_response_is_retried_only_where_a_repeat_is_safe() {
    let policy = NamedPolicy::new("quota").transient_response(|left: &u32| *left == 0);
    assert_eq!(policy.classify(Ok(&3)), Classification::SUCCESS);
    let found = policy.classify(Ok(&0));
    assert_eq!((found.verdict, found.ran), (Verdict::TRANSIENT, Ran::Yes));
    assert!(found.is_retriable(Effect::ReadOnly, None));
    assert!(!found.is_retriable(Effect::Mutating, None));
}

#[test]
fn a_refused_response_did_not_run() {
    let policy = NamedPolicy::new("quota").refused_response(|left: &u32| *left == 0);
    assert_eq!(policy.classify(Ok(&3)), Classification::SUCCESS);
    let found = policy.classify(Ok(&0));
    assert_eq!((found.verdict, found.ran), (Verdict::TRANSIENT, Ran::No));
    assert!(found.is_retriable(Effect::Mutating, None));
}

#[test]
fn an_error_of_one_s_own_is_judged_and_a_layer_s_is_not() {
    let is_denied = |error: &(dyn Error + 'static)| {
        crate::find::<io::Error>(error)
            .is_some_and(|it| it.kind() == io::ErrorKind::PermissionDenied)
    };
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    let plain = NamedPolicy::new("files");
    assert_eq!(ResponsePolicy::<()>::classify(&plain, Err(&denied)).verdict, Verdict::Permanent);
    let transient = plain.transient_error(is_denied);
    let found = ResponsePolicy::<()>::classify(&transient, Err(&denied));
    assert_eq!(found.verdict, Verdict::TRANSIENT);
    let refused = plain.refused_error(is_denied);
    let found = ResponsePolicy::<()>::classify(&refused, Err(&denied));
    assert_eq!((found.verdict, found.ran), (Verdict::TRANSIENT, Ran::No));
    let of_a_layer = crate::FailureInfo::new(code::CANCELLED, Ran::Unknown, Verdict::Cancelled)
        .because(io::Error::from(io::ErrorKind::PermissionDenied));
    let found = ResponsePolicy::<()>::classify(&refused, Err(&of_a_layer));
    assert_eq!((found.verdict, found.ran), (Verdict::Cancelled, Ran::Unknown));
}

#[cfg(feature = "keys")]
#[test]
fn a_key_of_one_s_own_is_told_apart_by_its_name_and_its_params() {
    let policy = NamedPolicy::new("database").idempotency_key_by(|query: &Query| {
        query.writes.then(|| DedupeKey::of("database", query.shard, "params"))
    });
    assert_eq!(policy.idempotency_key(&READ), Ok(None));
    let key = DedupeKey::of("database", "eu-2", "params");
    assert_eq!(policy.idempotency_key(&WRITE), Ok(Some(key)));
    assert_ne!(key.key, DedupeKey::of("elsewhere", "eu-2", "params").key);
    assert_ne!(key.key, DedupeKey::of("database", "eu-3", "params").key);
    let other = DedupeKey::of("database", "eu-2", "others");
    assert_eq!(key.key, other.key);
    assert_ne!(key.digest, other.digest);
    let logs = FingerprintKey::new([7; 32]);
    assert_eq!(policy.key_fingerprint(&WRITE, &logs), Some(logs.fingerprint(key.key)));
}
