//! A Redis that is down, slow, misconfigured or has foreign keys: each process uses its own
//! breakers.
use crate::peer::{Peer, until};
use std::time::Duration;
use tr_breaker::{BreakerLayer, share::Sharing};
use tr_core::BreakerState;
use tr_testkit::{faults::Proxy, redis::Server};

/// Many more than would be made if one of them waited for Redis.
const CALLS: usize = 5_000;

/// Calls pass, fail, open a breaker and are refused, on the spot: nothing of it waits for anything.
fn calls_go_on(peer: &Peer, tool: &str) {
    use std::task::{Context, Poll, Waker};
    let now = |call: std::pin::Pin<&mut dyn Future<Output = bool>>| {
        call.poll(&mut Context::from_waker(Waker::noop()))
    };
    let mut refused = 0;
    for _ in 0..CALLS {
        match now(std::pin::pin!(peer.call(tool))) {
            Poll::Ready(was_called) => refused += usize::from(!was_called),
            Poll::Pending => panic!("a call waits"),
        }
    }
    assert_eq!(refused, CALLS - crate::peer::FAILURES as usize);
    assert_eq!(peer.breaker(tool).state(), BreakerState::Open);
}

#[tokio::test]
async fn without_redis_all_is_local_and_with_it_all_converges() {
    let mut server = Server::start().unwrap();
    let a = Peer::new(&server.url()).connected().await;
    let b = Peer::new(&server.url()).connected().await;
    b.breaker("before");
    a.trip("before").await;
    b.state_becomes("before", BreakerState::Open).await;

    server.kill();
    let lost = a.status_when(|status| !status.connected).await;
    assert!(lost.error.unwrap().contains(&server.addr().to_string()));
    b.status_when(|status| !status.connected).await;
    calls_go_on(&a, "of-a");
    calls_go_on(&b, "of-b");
    a.breaker("before").reset();

    // Without what it knew.
    server.restart_empty().unwrap();
    b.state_becomes("of-a", BreakerState::Open).await;
    a.state_becomes("of-b", BreakerState::Open).await;
    b.state_becomes("before", BreakerState::Closed).await;
    let late = Peer::new(&server.url()).connected().await;
    late.state_becomes("of-a", BreakerState::Open).await;
    late.state_becomes("of-b", BreakerState::Open).await;
    late.state_becomes("before", BreakerState::Closed).await;
}

#[tokio::test]
async fn a_redis_that_is_emptied_is_told_again() {
    let server = Server::start().unwrap();
    let a = Peer::new(&server.url()).connected().await;
    a.trip("tool").await;
    let size = || server.command(["DBSIZE"]).unwrap().int();
    until(|| format!("{:?}", size()), || (size() == Some(3)).then_some(())).await;
    server.command(["FLUSHALL"]).unwrap();
    until(|| format!("{:?}", size()), || (size() == Some(3)).then_some(())).await;
    let b = Peer::new(&server.url()).connected().await;
    b.state_becomes("tool", BreakerState::Open).await;
}

#[tokio::test]
async fn a_paused_redis_delays_no_call() {
    let server = Server::start().unwrap();
    let a = Peer::new(&server.url()).connected().await;
    let b = Peer::new(&server.url()).connected().await;
    server.pause();
    calls_go_on(&a, "tool");
    a.status_when(|status| !status.connected).await;
    calls_go_on(&a, "another");
    server.resume();
    b.state_becomes("tool", BreakerState::Open).await;
    b.state_becomes("another", BreakerState::Open).await;
}

#[tokio::test]
async fn a_black_hole_delays_no_call_and_what_comes_out_of_it_late_does_nothing() {
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let a = Peer::new(&server.url_at(proxy.addr())).connected().await;
    let b = Peer::new(&server.url()).connected().await;
    b.breaker("tool");
    a.trip("tool").await;
    b.state_becomes("tool", BreakerState::Open).await;

    proxy.black_hole();
    calls_go_on(&a, "another");
    a.status_when(|status| !status.connected).await;
    // Newer than all that waits in the hole.
    b.breaker("tool").reset();
    b.breaker("another").force_open();
    proxy.heal();
    a.state_becomes("tool", BreakerState::Closed).await;
    a.state_becomes("another", BreakerState::ForcedOpen).await;
    a.status_when(|status| status.connected).await;
    assert_eq!(b.breaker("tool").state(), BreakerState::Closed);
    assert_eq!(b.breaker("another").state(), BreakerState::ForcedOpen);
}

#[tokio::test]
async fn a_reply_that_is_lost_is_made_up_for() {
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let a = Peer::new(&server.url_at(proxy.addr())).connected().await;
    let b = Peer::new(&server.url()).connected().await;
    b.breaker("tool");
    proxy.cut_replies();
    a.trip("tool").await;
    a.status_when(|status| !status.connected).await;
    a.breaker("tool").reset();
    proxy.heal();
    a.status_when(|status| status.connected).await;
    a.breaker("marker").force_open();
    b.state_becomes("marker", BreakerState::ForcedOpen).await;
    b.state_becomes("tool", BreakerState::Closed).await;
    a.state_becomes("tool", BreakerState::Closed).await;
}

#[tokio::test]
async fn a_wrong_password_is_told_and_not_shown() {
    let server = Server::options().password("sesame42").start().unwrap();
    let url = server.url().replace("sesame42", "sesame43");
    let peer = Peer::new(&url);
    let status = peer.status_when(|status| status.error.is_some()).await;
    let error = status.error.unwrap();
    assert!(error.contains("WRONGPASS") || error.contains("authentication"), "{error}");
    assert!(error.contains(&server.addr().to_string()) && !error.contains("sesame"), "{error}");
    assert!(!status.connected);
    calls_go_on(&peer, "tool");
}

#[tokio::test]
async fn a_replica_takes_no_decisions() {
    let primary = Server::start().unwrap();
    let replica = Server::options().replica_of(&primary).start().unwrap();
    let peer = Peer::new(&replica.url());
    peer.breaker("tool").force_open();
    let status = peer.status_when(|status| status.error.is_some()).await;
    assert!(status.error.as_ref().unwrap().to_lowercase().contains("read"), "{status:?}");
    calls_go_on(&peer, "another");
}

#[tokio::test]
async fn garbage_is_ignored_and_told() {
    let server = Server::start().unwrap();
    let key = |what: &str| format!("tr-breaker:{{tests}}:v1:{what}");
    for (at, (name, entry)) in
        [("a", "{\"state\":\"open\"}"), ("b", "2 of a later version"), ("c", "1 1 x 1 1 ajar set")]
            .into_iter()
            .enumerate()
    {
        server.command(["HSET", &key("state"), name, entry]).unwrap();
        server.command(["ZADD", &key("log"), &(at + 1).to_string(), name]).unwrap();
    }
    server.command(["HSET", &key("meta"), "era", "theirs", "revision", "3"]).unwrap();
    let peer = Peer::new(&server.url()).connected().await;
    let status = peer.health.status();
    assert_eq!(status.ignored, 3);
    let last = status.last_ignored.unwrap();
    assert_eq!(&*last, "\"c\": unknown format");
    for name in ["a", "b", "c"] {
        assert_eq!(peer.breaker(name).state(), BreakerState::Closed);
    }
    // What is written over garbage is fine again; what is later stays.
    peer.trip("a").await;
    peer.trip("b").await;
    let other = Peer::new(&server.url()).connected().await;
    other.state_becomes("a", BreakerState::Open).await;
    let later = server.command(["HGET", &key("state"), "b"]).unwrap();
    assert_eq!(later.text(), Some("2 of a later version"));
}

#[tokio::test]
async fn a_key_that_is_somebody_elses_is_told() {
    let server = Server::start().unwrap();
    server.command(["SET", "tr-breaker:{tests}:v1:log", "mine"]).unwrap();
    let peer = Peer::new(&server.url());
    let status = peer.status_when(|status| status.error.is_some()).await;
    assert!(status.error.as_ref().unwrap().contains("WRONGTYPE"), "{status:?}");
    calls_go_on(&peer, "tool");
}

#[tokio::test]
async fn what_cannot_be_shared_is_refused_at_once() {
    let layer = BreakerLayer::default();
    let build = |url: &str, namespace: &str, every| {
        Sharing::builder(url).namespace(namespace).every(every).build(layer.registry())
    };
    let second = Duration::from_secs(1);
    let error = build("http://:sesame42@nowhere", "a b", Duration::ZERO).unwrap_err();
    assert_eq!(error.faults().count(), 3, "{error}");
    assert!(!error.to_string().contains("sesame"), "{error}");
    let first = build("redis://127.0.0.1/", "tests", second).unwrap();
    let error = build("redis://127.0.0.1/", "tests", second).unwrap_err();
    assert_eq!(
        error.faults().collect::<Vec<_>>(),
        ["the registry is already shared: use one `Sharing` for each registry"]
    );
    drop(first);
}
