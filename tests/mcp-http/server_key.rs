//! A server that recognizes a repeat by a key among its arguments.
use crate::{
    client::{Call, Era, Http, Kind},
    guard::Way,
    identity::shop,
    upstream::Fault,
    wire::until,
};
use std::thread;

/// Without an id the same call goes on, whatever the model writes as the server's key.
#[test]
fn a_call_whose_client_vanished_goes_on_under_another_server_key() {
    let (upstream, shop) = shop();
    let catalog = shop.path("catalog.toml");
    std::fs::write(&catalog, "[tools.pay]\nkeys = { server_key = \"/idempotency_key\" }\n")
        .unwrap();
    let shop = shop.with(["--catalog".into(), catalog]);
    let guard = shop.listen(Way::HttpHttp);
    let mut client = Http::open(&guard.url, Kind::Keyless, Era::Legacy);
    let mut call = Call::new(Kind::Keyless, "pay", "42");
    call.key = Some("k1");
    upstream.play(Fault::NoHeaders);
    drop(client.begin_call(&call));
    until("it runs", || (upstream.executed("42") == 1).then_some(()));
    call.key = Some("k2");
    thread::scope(|scope| {
        let again = scope.spawn(|| client.once(&call));
        upstream.release();
        let seen = again.join().unwrap();
        assert!(seen.text().contains("receipt of"), "{seen:?}");
    });
    assert_eq!(upstream.executed("42"), 1);
}
