//! A sign of life before a payment; the headers of 2026-07-28.
use crate::{
    client::{Call, Era, Http, Kind, Seen, ask},
    guard::{Shop, Way},
    upstream::{Fault, Lost, Upstream},
};
use serde_json::{Value, json};

/// A client whose guard was started again, and so has no sign of life of its session.
fn after_a_restart(shop: &Shop, kind: Kind, era: Era) -> (Http, crate::guard::Listening) {
    let mut guard = shop.listen(Way::HttpHttp);
    let mut client = Http::open(&guard.url, kind, era);
    guard.kill();
    let guard = shop.listen(Way::HttpHttp);
    let session = client.session.take();
    let mut moved = Http::new(&guard.url, kind, era);
    (moved.session, moved.last_id) = (session, 50);
    (moved, guard)
}

#[test]
fn a_session_that_was_lost_is_noticed_before_the_payment() {
    for kind in Kind::ALL {
        let upstream = Upstream::start();
        let shop = Shop::over(&upstream);
        let (mut client, _guard) = after_a_restart(&shop, kind, Era::Legacy);
        upstream.lose_sessions();
        let seen = client.call(&Call::new(kind, "pay", "42"));
        assert!(seen[0].is_status(404), "{kind:?}: {seen:?}");
        assert!(seen.last().unwrap().is_success(), "{kind:?}: {seen:?}");
        assert_eq!(upstream.executed("42"), 1, "{kind:?}");
        assert_eq!(upstream.seen("tools/call").len(), 1, "the call itself was not refused");
    }
}

#[test]
fn a_ping_precedes_a_payment_and_no_read_and_only_where_there_was_no_sign_of_life() {
    for (era, what) in [(Era::Legacy, "ping"), (Era::Modern, "server/discover")] {
        let upstream = Upstream::start();
        let shop = Shop::over(&upstream);
        let (mut client, _guard) = after_a_restart(&shop, Kind::Codex, era);
        let before = upstream.seen(what).len();
        let asked = || upstream.seen(what).len() - before;
        assert!(client.once(&Call::new(Kind::Codex, "pay", "42")).is_success());
        assert_eq!(asked(), 1, "{:?}", upstream.story());
        assert!(client.once(&Call::new(Kind::Codex, "pay", "43")).is_success());
        assert_eq!(asked(), 1, "{:?}", upstream.story());
        let ping = upstream.seen(what).pop().unwrap();
        assert_eq!(ping.head.header("mcp-session-id"), client.session.as_deref());
    }
}

#[test]
fn a_ping_has_the_credential_of_its_call() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let (client, _guard) = after_a_restart(&shop, Kind::Codex, Era::Legacy);
    let mut client = client.with("authorization", "Bearer mine");
    assert!(client.once(&Call::new(Kind::Codex, "pay", "42")).is_success());
    let ping = upstream.seen("ping").pop().unwrap();
    assert_eq!(ping.head.header("authorization"), Some("Bearer mine"));
    // Another credential has had no sign of life.
    let mut client = client.with("authorization", "Bearer theirs");
    assert!(client.once(&Call::new(Kind::Codex, "pay", "43")).is_success());
    let ping = upstream.seen("ping").pop().unwrap();
    assert_eq!(ping.head.header("authorization"), Some("Bearer theirs"));
}

#[test]
fn no_ping_is_sent_where_it_is_off() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream).with(["--preflight", "off"]);
    let (mut client, _guard) = after_a_restart(&shop, Kind::Codex, Era::Legacy);
    assert!(client.once(&Call::new(Kind::Codex, "pay", "42")).is_success());
    assert_eq!(upstream.seen("ping").len(), 0);
}

/// After the sign of life a refusal of the call itself is not believed.
#[test]
fn a_refusal_after_the_ping_is_not_believed() {
    for lost in [Lost::NotFound, Lost::BadRequest] {
        let upstream = Upstream::start();
        let shop = Shop::over(&upstream);
        let (mut client, _guard) = after_a_restart(&shop, Kind::ClaudeCode, Era::Legacy);
        upstream.play(Fault::LostSession(lost));
        let seen = client.call(&Call::new(Kind::ClaudeCode, "pay", "42"));
        assert!(seen.len() == 1 && seen[0].is_in_band_failure(), "{lost:?}: {seen:?}");
        assert!(seen[0].text().contains("may have run"), "{lost:?}: {seen:?}");
        assert_eq!(upstream.executed("42"), 1, "{lost:?}");
    }
}

#[test]
fn headers_of_2026_that_do_not_say_what_the_body_says_are_refused() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let guard = shop.listen(Way::HttpHttp);
    let client = Http::open(&guard.url, Kind::Codex, Era::Modern);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "pay", "arguments": { "order": "42" }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    let send = |version: &str, method: &str, name: &str| {
        let headers =
            [("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", name)];
        let bytes = client.bytes(&headers, body.to_string().as_bytes());
        ask(client.authority(), &bytes, &body["id"]).1
    };
    for (version, method, name) in [
        ("2026-07-28", "tools/list", "pay"),
        ("2026-07-28", "tools/call", "balance"),
        ("2026-07-28", "tools/call", "=?base64?YmFsYW5jZQ==?="),
        ("2025-11-25", "tools/call", "pay"),
    ] {
        let seen = send(version, method, name);
        let Seen::Status { status: 400, body, .. } = &seen else { panic!("{seen:?}") };
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], -32020, "{body}");
    }
    assert_eq!(upstream.executed("42"), 0);
    let seen = send("2026-07-28", "tools/call", "=?base64?cGF5?=");
    assert!(seen.is_success(), "{seen:?}");
    assert_eq!(upstream.executed("42"), 1);
}

/// From standard input and output the guard writes the headers.
#[test]
fn headers_of_2026_are_written_for_a_client_on_stdio() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let mut client = shop.open(Way::StdioHttp, Kind::Codex, Era::Modern);
    assert!(client.once(&Call::new(Kind::Codex, "pay", "42")).is_success());
    let seen = upstream.seen("tools/call").pop().unwrap();
    assert_eq!(seen.head.header("mcp-method"), Some("tools/call"));
    assert_eq!(seen.head.header("mcp-name"), Some("pay"));
    assert_eq!(seen.head.header("mcp-protocol-version"), Some("2026-07-28"));
}
