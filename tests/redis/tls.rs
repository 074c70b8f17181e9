//! Breakers are shared over TLS where Redis proves who it is, and nowhere else.
use crate::peer::{Peer, until};
use tr_breaker::{
    BreakerLayer,
    share::{Builder, Sharing},
};
use tr_core::BreakerState;
use tr_testkit::{redis::Server, tls::Authority};

fn trusting(server: &Server, authority: &Authority) -> Builder {
    Sharing::builder(server.url()).namespace("tests").tls_roots(authority.pem())
}

#[tokio::test]
async fn what_breakers_decide_travels_over_tls() {
    let authority = Authority::new();
    let server = Server::options().tls(authority.issue(["127.0.0.1"])).start().unwrap();
    let a = Peer::sharing(trusting(&server, &authority)).connected().await;
    let b = Peer::sharing(trusting(&server, &authority)).connected().await;
    b.breaker("tool");
    a.trip("tool").await;
    b.state_becomes("tool", BreakerState::Open).await;
}

#[tokio::test]
async fn a_redis_that_does_not_prove_who_it_is_hears_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Server::options().tls(authority.issue(["127.0.0.1"])).start().unwrap();
    let elsewhere = Server::options().tls(authority.issue(["elsewhere.example"])).start().unwrap();
    for (server, authority, why) in
        [(&server, &other, "UnknownIssuer"), (&elsewhere, &authority, "not valid for name")]
    {
        let peer = Peer::sharing(trusting(server, authority));
        peer.trip("tool").await;
        let error = || peer.health.status().error.map(|error| error.to_string());
        let text = until(|| format!("{:?}", peer.health.status()), error).await;
        assert!(text.contains(why), "{text}");
        assert_eq!(server.command(["DBSIZE"]).unwrap().int(), Some(0));
    }
}

#[tokio::test]
async fn settings_that_cannot_work_are_told_when_it_is_built() {
    let layer = BreakerLayer::default();
    let pem = Authority::new().pem();
    for (builder, why) in [
        (Sharing::builder("rediss://:secret@host").tls_roots("none"), "no certificate"),
        (Sharing::builder("redis://:secret@host").tls_roots(pem.clone()), "does not ask for TLS"),
        (Sharing::builder("rediss://:secret@host/#insecure").tls_roots(pem), "always verified"),
    ] {
        let text = builder.build(layer.registry()).unwrap_err().to_string();
        assert!(text.contains(why) && !text.contains("secret"), "{text}");
    }
}
