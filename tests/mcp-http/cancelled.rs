//! Calls that are cancelled, or whose clients stop waiting, of MCP 2026-07-28: the end of a stream cancels.
use crate::{
    child::paid,
    client::{Call, Era, Http, Kind, Stdio},
    guard::{Client, Shop, Way},
    identity::code,
    upstream::{Fault, Upstream},
    wire::until,
};
use serde_json::json;
use std::fs;

/// Whether the catalog declares that the payment may be cancelled.
fn declared(shop: Shop, is_cancellable: bool) -> Shop {
    let catalog = shop.path("tools.toml");
    fs::write(&catalog, format!("[tools.pay]\ncancellable = {is_cancellable}\n")).unwrap();
    shop.with([std::ffi::OsStr::new("--catalog"), catalog.as_os_str()])
}

fn cancel(stdio: &mut Stdio, id: u32) {
    let params = json!({ "requestId": id });
    stdio.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
}

/// Waits until its record says that it may have run: an equal call does not run then.
fn until_unknown(shop: &Shop) {
    until("it is of unknown outcome", || {
        let (end, unknown) = shop.records(&["list", "--unknown"]);
        (end == 0 && unknown.contains("pay")).then_some(())
    });
}

#[test]
fn a_payment_whose_client_leaves_is_cancelled_if_the_catalog_says_so() {
    for is_cancellable in [true, false] {
        let upstream = Upstream::start();
        let shop = declared(Shop::over(&upstream), is_cancellable);
        let guard = shop.listen(Way::HttpHttp);
        let mut client = Http::open(&guard.url, Kind::Codex, Era::Modern);
        upstream.play(Fault::NoHeaders);
        let call = Call::new(Kind::Codex, "pay", "42");
        let stream = client.begin_call(&call);
        until("it runs", || (upstream.executed("42") == 1).then_some(()));
        drop(stream);
        if is_cancellable {
            until("it is cancelled", || upstream.was_left("42").then_some(()));
            until_unknown(&shop);
            let seen = client.once(&Call::new(Kind::Codex, "pay", "42"));
            assert_eq!(code(&seen), "outcome_unknown", "{seen:?}");
        } else {
            let again = client.begin_call(&call);
            upstream.release();
            drop(again);
            assert!(client.once(&call).is_success());
            assert!(!upstream.was_left("42"));
        }
        assert_eq!(upstream.executed("42"), 1);
        upstream.release();
    }
}

#[test]
fn a_payment_that_is_cancelled_from_stdio_is_cancelled_if_the_catalog_says_so() {
    for is_cancellable in [true, false] {
        let upstream = Upstream::start();
        let shop = declared(Shop::over(&upstream), is_cancellable);
        let Client::Stdio(mut client) = shop.open(Way::StdioHttp, Kind::Codex, Era::Modern) else {
            unreachable!()
        };
        upstream.play(Fault::NoHeaders);
        let id = client.begin_call(&Call::new(Kind::Codex, "pay", "42"));
        until("it runs", || (upstream.executed("42") == 1).then_some(()));
        cancel(&mut client, id);
        until_unknown(&shop);
        let equal = Call::new(Kind::Codex, "pay", "42");
        if is_cancellable {
            until("it is cancelled", || upstream.was_left("42").then_some(()));
            assert_eq!(code(&client.once(&equal)), "outcome_unknown");
        } else {
            assert_eq!(code(&client.once(&equal)), "outcome_unknown");
            assert!(!upstream.was_left("42"));
            upstream.release();
            // Its late answer settles it.
            until("an equal call runs", || client.once(&equal).is_success().then_some(()));
        }
        upstream.release();
    }
}

#[test]
fn a_command_hears_that_a_payment_is_cancelled_if_the_catalog_says_so() {
    let shop = declared(Shop::over_child(), true);
    let guard = shop.listen(Way::HttpStdio);
    let mut client = Http::open(&guard.url, Kind::Codex, Era::Modern);
    let stream = client.begin_call(&Call::new(Kind::Codex, "pay", "hang"));
    until("it runs", || (paid(&shop, "hang") == 1).then_some(()));
    drop(stream);
    until("it is cancelled", || (paid(&shop, "cancelled") == 1).then_some(()));
    until_unknown(&shop);
    let seen = client.once(&Call::new(Kind::Codex, "pay", "hang"));
    assert_eq!(code(&seen), "outcome_unknown", "{seen:?}");
    assert_eq!(paid(&shop, "hang"), 1);
}
