//! Records over TLS: kept where the server proves who it is, and nowhere else.
use crate::{process::claim, sentinels::Sentinels, world::TIMEOUT};
use std::time::Duration;
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    redis::{Builder, Redis},
    store::{Claimed, RecordStore as _, StoreErrorKind},
};
use tr_testkit::{
    redis::Server,
    tls::{Authority, Issued},
};

const HERE: [&str; 2] = ["localhost", "127.0.0.1"];

fn start(issued: Issued) -> Server {
    Server::options().password("sesame42").tls(issued).start().unwrap()
}

fn trusting(url: impl Into<String>, authority: &Authority) -> Builder {
    Redis::builder(url).response_timeout(Duration::from_secs(20)).tls_roots(authority.pem())
}

/// What a claim says, once and again.
async fn told(builder: Builder) -> Vec<(StoreErrorKind, String)> {
    let store = builder.build().unwrap();
    let mut told = Vec::new();
    for name in ["one", "other"] {
        let error = store.claim(&claim(name)).await.unwrap_err();
        told.push((error.kind(), error.to_string()));
    }
    told
}

#[tokio::test]
async fn records_are_kept_where_the_authority_is_trusted() {
    let authority = Authority::new();
    let server = start(authority.issue(HERE));
    let url = server.url();
    assert!(url.starts_with("rediss://"), "{url}");
    for url in [&url, &url.replace("127.0.0.1", "localhost")] {
        let store = trusting(url, &authority).connect().await.unwrap();
        let claim = claim(url);
        assert!(matches!(store.claim(&claim).await.unwrap(), Claimed::Run(_)));
        assert!(store.release(&claim.key, claim.owner).await.unwrap());
    }
}

#[tokio::test]
async fn who_does_not_prove_to_be_the_server_is_sent_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = start(authority.issue(HERE));
    let elsewhere = start(authority.issue(["elsewhere.example"]));
    for (builder, why) in [
        (trusting(server.url(), &other), "UnknownIssuer"),
        (Redis::builder(server.url()).response_timeout(Duration::from_secs(20)), "UnknownIssuer"),
        (trusting(elsewhere.url(), &authority), "not valid for name"),
    ] {
        for (kind, text) in told(builder).await {
            assert_eq!(kind, StoreErrorKind::Unreachable, "{text}");
            assert!(text.contains(why) && text.contains("check the certificate"), "{text}");
        }
    }
    for server in [server, elsewhere] {
        assert_eq!(server.command(["DBSIZE"]).unwrap().int(), Some(0));
        let seen = server.command(["INFO", "commandstats"]).unwrap().to_string();
        assert!(!seen.contains("evalsha") && !seen.contains("hello"), "{seen}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_sent_no_record_and_no_password() {
    let server = Server::start().unwrap();
    let url = format!("rediss://:sesame42@{}/", server.addr());
    // Which waits for a line that ends, perhaps.
    let hasty = trusting(url, &Authority::new()).response_timeout(TIMEOUT);
    for (kind, text) in told(hasty).await {
        // Only the handshake failed: nothing was sent that could have run.
        assert_eq!(kind, StoreErrorKind::Unreachable, "{text}");
    }
    assert_eq!(server.command(["DBSIZE"]).unwrap().int(), Some(0));
    let seen = server.command(["INFO", "commandstats"]).unwrap().to_string();
    assert!(
        !seen.contains("evalsha") && !seen.contains("hello") && !seen.contains("auth"),
        "{seen}"
    );
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_is_shown_one() {
    let authority = Authority::new();
    let options = Server::options().tls(authority.issue(HERE));
    let server = options.set("tls-auth-clients", ["yes"]).start().unwrap();
    let own = authority.issue(["client.example"]);
    let shown = trusting(server.url(), &authority).tls_certificate(own.certificate(), own.key());
    let store = shown.connect().await.unwrap();
    assert!(matches!(store.claim(&claim("pay")).await.unwrap(), Claimed::Run(_)));
    let foreign = Authority::new().issue(["client.example"]);
    let stranger =
        trusting(server.url(), &authority).tls_certificate(foreign.certificate(), foreign.key());
    for builder in [trusting(server.url(), &authority), stranger] {
        builder.connect().await.unwrap_err();
    }
    assert_eq!(server.command(["DBSIZE"]).unwrap().int(), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_the_primary_they_name_are_verified() {
    let (authority, other) = (Authority::new(), Authority::new());
    let primary = start(authority.issue(HERE));
    let sentinels =
        Sentinels::watch(&primary, 1, || Server::options().tls(authority.issue(HERE))).await;
    let urls = sentinels.urls();
    assert!(urls[0].starts_with("rediss://"), "{urls:?}");
    let builder = |authority| trusting("rediss://:sesame42@records", authority).sentinels(&urls);
    let store = builder(&authority).connect().await.unwrap();
    assert!(matches!(store.claim(&claim("pay")).await.unwrap(), Claimed::Run(_)));
    let error = builder(&other).connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn settings_that_cannot_work_are_told_when_the_store_is_built() {
    let authority = Authority::new();
    let own = authority.issue(HERE);
    let refused = |builder: Builder| {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused);
        let text = error.to_string();
        assert!(!text.contains("secret"), "{text}");
        text
    };
    let url = "rediss://:secret@localhost";
    for (builder, why) in [
        (Redis::builder(url).tls_roots("none"), "no certificate in the PEM text"),
        (trusting(url, &authority).tls_certificate(own.certificate(), "none"), "not a private key"),
        (trusting("redis://:secret@localhost", &authority), "does not use TLS"),
        (trusting(format!("{url}/#insecure"), &authority), "always verified"),
        (trusting(url, &authority).sentinels(["rediss://a/#insecure"]), "always verified"),
        (trusting(url, &authority).sentinels(["rediss://:a@a", "rediss://:b@b"]), "the same user"),
    ] {
        let text = refused(builder);
        assert!(text.contains(why), "{text}");
    }
}
