//! A client on standard input and output, and a server over HTTP that refuses, lingers or is silent.
use crate::{
    client::{Call, Era, Kind, Seen, Stdio},
    guard::{Shop, terminate},
    upstream::{Fault, Upstream},
    wire::{now, until},
};
use serde_json::{Value, json};
use std::time::Duration;

/// A client that has left is not waited for longer than this.
const SOON: Duration = Duration::from_secs(20);

fn shop() -> (Upstream, Shop) {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    (upstream, shop)
}

fn call(order: &str) -> Call {
    Call::new(Kind::Keyless, "pay", order)
}

fn open_in(shop: &Shop, mode: &str) -> Stdio {
    let mut command = shop.stdio();
    command.args(["--mode", mode]);
    Stdio::open(command, Era::Legacy)
}

fn error(seen: &Seen) -> &Value {
    match seen {
        Seen::Answer(answer) => &answer["error"],
        other => panic!("{other:?}"),
    }
}

/// The stream of the first call outlives its answer, and ends while the second waits for its own.
#[test]
fn an_id_is_used_again_while_the_old_stream_lingers() {
    let (upstream, shop) = shop();
    let mut client = Stdio::open(shop.stdio(), Era::Legacy);
    upstream.play(Fault::LingersAsEvents);
    upstream.play(Fault::NoHeaders);
    assert!(client.request_as(77, &call("1")).is_success());
    let second = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.request_as(77, &call("2")));
        until("it runs", || (upstream.executed("2") == 1).then_some(()));
        upstream.release();
        waiting.join().unwrap()
    });
    assert!(second.is_success(), "{second:?}");
}

#[test]
fn each_request_of_a_refused_batch_is_answered() {
    let (upstream, shop) = shop();
    upstream.refuse_batches();
    for mode in ["enforce", "off"] {
        let mut client = open_in(&shop, mode);
        let ping = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        client.send(&json!([ping(51), ping(52)]));
        for id in [51, 52] {
            let seen = client.answer(id);
            let said = error(&seen)["message"].as_str().unwrap();
            assert!(said.contains("no batches"), "{mode}: {seen:?}");
        }
        client.close();
    }
    assert_eq!(upstream.seen("initialize").len(), 2, "no session was lost");
}

/// After one 503, with a pause also where the server wants none; not after 404.
#[test]
fn the_servers_own_stream_is_opened_again() {
    let (upstream, shop) = shop();
    upstream.play_streams(&[503, 200, 200, 200, 404]);
    let since = now();
    let mut client = Stdio::open(shop.stdio(), Era::Legacy);
    until("it is opened", || (upstream.seen("GET").len() == 5).then_some(()));
    // A second after the 503, and then thrice the shortest pause.
    assert!(since.elapsed() >= Duration::from_millis(1300), "{:?}", since.elapsed());
    assert!(client.once(&call("1")).is_success());
    client.close();
    assert_eq!(upstream.seen("GET").len(), 5);
}

#[test]
fn who_leaves_after_a_cancellation_is_not_waited_for() {
    let (upstream, shop) = shop();
    for mode in ["enforce", "off"] {
        let mut client = open_in(&shop, mode);
        let before = upstream.seen("slow").len();
        let id = client.begin_request("slow", json!({}));
        until("it waits", || (upstream.seen("slow").len() > before).then_some(()));
        let params = json!({ "requestId": id });
        client.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
        );
        let since = now();
        client.close();
        assert!(since.elapsed() < SOON, "{mode}: {:?}", since.elapsed());
    }
    upstream.release();
}

/// In the modes that change nothing such a line cannot pass either, since it would be a request of HTTP.
#[test]
fn what_is_too_long_is_answered_in_every_mode() {
    let (upstream, shop) = shop();
    for mode in ["off", "observe", "shadow", "enforce"] {
        let mut command = shop.stdio();
        command.args(["--mode", mode, "--max-line", "4000"]);
        let mut client = Stdio::open(command, Era::Legacy);
        let seen = client.request("ping", json!({ "x": "x".repeat(5000) }));
        assert_eq!(error(&seen)["code"], -32600, "{mode}: {seen:?}");
        upstream.play(Fault::Oversized(5000));
        let seen = client.once(&call(mode));
        let is_said = seen.text().contains("raise --max-line");
        assert!(is_said, "{mode}: {seen:?}");
        client.close();
    }
}

#[test]
fn a_signal_ends_the_session() {
    let (upstream, shop) = shop();
    let mut client = Stdio::open(shop.stdio(), Era::Legacy);
    terminate(&client.child);
    assert_eq!(client.child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(upstream.seen("DELETE").len(), 1);
}
