//! As many calls and requests as are kept, and one more.
use super::*;
use crate::engine::{in_flight::MAX_CALLS, proxy::requests::MAX_REQUESTS};
use tr_core::internal::lock;

fn ping(id: usize) -> String {
    format!("{{\"id\":{id},\"method\":\"ping\"}}\n")
}

#[tokio::test(start_paused = true)]
async fn one_call_too_many_is_refused_and_did_not_run() {
    assert_eq!(MAX_CALLS, 10_000, "as docs/bounds.md has it");
    let mut bench = Bench::new(Mode::Enforce);
    for id in 0..MAX_CALLS {
        bench.client(call(&id.to_string(), "pay").as_bytes());
    }
    bench.settle().await;
    assert_eq!(bench.server_gets().lines().count(), MAX_CALLS);
    assert_eq!(bench.client_gets(), "");

    bench.client(call("\"more\"", "pay").as_bytes());
    bench.settle().await;
    assert_eq!(bench.server_gets(), "");
    let refusal: serde_json::Value = serde_json::from_str(&bench.client_gets()).unwrap();
    assert_eq!(refusal["id"], "more");
    let why = refusal["error"]["message"].as_str().unwrap();
    assert!(why.contains("too many calls are in flight: the tool did not run"), "{why}");

    bench.server(done("7").as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), done("7"));
    bench.client(call("\"more\"", "pay").as_bytes());
    bench.settle().await;
    assert_eq!(bench.server_gets(), call("\"more\"", "pay"));
}

#[tokio::test(start_paused = true)]
async fn one_request_too_many_passes_and_is_not_remembered() {
    assert_eq!(MAX_REQUESTS, 65_536, "as docs/bounds.md has it");
    let mut bench = Bench::new(Mode::Enforce);
    for id in 0..MAX_REQUESTS {
        bench.client(ping(id).as_bytes());
    }
    // The list of tools is not read, and an end of the server's not told.
    bench.list();
    assert_eq!(bench.proxy.requests.room(), 0);
    assert!(!bench.proxy.requests.open.contains_key(&Token::Text("list".into())));
    assert!(lock(&bench.proxy.wire.effects).of("read").is_none());

    bench.client(ping(MAX_REQUESTS).as_bytes());
    assert_eq!(bench.server_gets(), ping(MAX_REQUESTS), "it passes nevertheless");
    bench.server(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
    assert_eq!(bench.client_gets(), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
    bench.list();
    assert!(lock(&bench.proxy.wire.effects).of("read").is_some(), "there was room for one");

    bench.client(ping(7).as_bytes());
    bench.client(ping(MAX_REQUESTS).as_bytes());
    bench.proxy.on_server_ended(None);
    let said = bench.client_gets();
    assert_eq!(said.lines().count(), MAX_REQUESTS);
    assert!(said.contains("Connection closed: the MCP server has ended"));
    assert!(!said.contains("\"id\":65536"));
}

#[tokio::test(start_paused = true)]
async fn each_line_of_a_call_is_read_once() {
    let mut bench = Bench::new(Mode::Enforce);
    let before = jsonrpc::READS.get();
    bench.client(call("1", "pay").as_bytes());
    bench.settle().await;
    bench.server(done("1").as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), done("1"));
    assert_eq!(jsonrpc::READS.get() - before, 2);
}
