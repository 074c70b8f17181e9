//! A client whose token is renewed while its session lasts.
use crate::{
    client::{Call, Era, Http, Kind, Seen},
    guard::Way,
    identity::{code, shop},
    upstream::Fault,
    wire::until,
};
use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, thread};

/// A client with this credential, in a session of its own.
fn opened(url: &str, kind: Kind, credential: &str) -> Http {
    let mut client = Http::new(url, kind, Era::Legacy).with("authorization", credential);
    client.begin();
    client
}

/// Once the server has accepted the new token there.
#[test]
fn a_renewed_token_gets_the_answer_once_the_server_has_accepted_it_in_the_session() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let call = Call::new(Kind::Keyed, "pay", "42");
    let mut client = opened(&guard.url, Kind::Codex, "Bearer old");
    assert!(client.once(&call).is_success());
    let mut renewed = client.with("authorization", "Bearer new");
    let is_refused = |seen: &Seen| {
        assert!(!seen.text().contains("receipt"), "{seen:?}");
        assert_eq!(code(seen), "idempotency_conflict", "{seen:?}");
        assert!(seen.text().contains("is done [record "), "{seen:?}");
    };
    is_refused(&renewed.once(&call));
    renewed.list();
    let seen = renewed.once(&call);
    assert!(seen.is_success() && seen.text().contains("receipt of"), "{seen:?}");
    let mut elsewhere = opened(&guard.url, Kind::Codex, "Bearer new");
    elsewhere.list();
    is_refused(&elsewhere.once(&call));
    assert_eq!(upstream.executed("42"), 1);
}

/// The same behind a listener that only its own token opens.
#[test]
fn a_renewed_token_gets_the_answer_at_once_under_the_same_listener_token() {
    let (upstream, shop) = shop();
    let token = shop.path("token");
    std::fs::write(&token, "0123456789abcdef").unwrap();
    std::fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let shop = shop.with(["--token-file".into(), token]);
    let guard = shop.listen(Way::HttpHttp);
    let call = Call::new(Kind::Keyed, "pay", "42");
    let mut client = Http::new(&guard.url, Kind::Codex, Era::Legacy)
        .with("x-tool-guard-token", "0123456789abcdef")
        .with("authorization", "Bearer old");
    client.begin();
    assert!(client.once(&call).is_success());
    let seen = client.with("authorization", "Bearer new").once(&call);
    assert!(seen.is_success() && seen.text().contains("receipt of"), "{seen:?}");
    assert_eq!(upstream.executed("42"), 1);
}

/// The call may have run under the old token, and the model asks again under the new one.
#[test]
fn a_call_of_unknown_outcome_blocks_its_equals_under_a_renewed_token() {
    for is_accepted in [false, true] {
        let (upstream, shop) = shop();
        let guard = shop.listen(Way::HttpHttp);
        let call = || Call::new(Kind::Codex, "pay", "42");
        let mut client =
            Http::new(&guard.url, Kind::Codex, Era::Legacy).with("authorization", "Bearer old");
        client.begin();
        upstream.play(Fault::Dropped);
        assert!(client.once(&call()).is_in_band_failure());
        let mut renewed = client.with("authorization", "Bearer new");
        if is_accepted {
            renewed.list();
        }
        let seen = renewed.once(&call());
        assert_eq!(code(&seen), "outcome_unknown", "{seen:?}");
        assert_eq!(upstream.executed("42"), 1);
    }
}

/// A client without ids gives up, has its token renewed, and asks again while the first call runs.
#[test]
fn a_running_call_is_not_made_again_under_a_renewed_token() {
    for (is_accepted, is_same) in [(false, false), (false, true), (true, false), (true, true)] {
        let (upstream, shop) = shop();
        let guard = shop.listen(Way::HttpHttp);
        let mut client =
            Http::new(&guard.url, Kind::Keyless, Era::Legacy).with("authorization", "Bearer old");
        client.begin();
        let call = Call::new(Kind::Keyless, "pay", "42");
        upstream.play(Fault::NoHeaders);
        let stream = client.begin_call(&call);
        until("it runs", || (upstream.executed("42") == 1).then_some(()));
        drop(stream);
        let mut renewed = client.with("authorization", "Bearer new");
        if is_accepted {
            renewed.list();
        }
        if is_same {
            // The very same bytes but for the token.
            renewed.last_id -= 1 + u32::from(is_accepted);
        }
        thread::scope(|scope| {
            let again = scope.spawn(|| renewed.once(&call));
            if is_accepted {
                upstream.release();
            }
            let seen = again.join().unwrap();
            assert_eq!(seen.text().contains("receipt of"), is_accepted, "{seen:?}");
            assert!(is_accepted || seen.text().contains("did not run"), "{seen:?}");
        });
        upstream.release();
        assert_eq!(upstream.executed("42"), 1);
    }
}
