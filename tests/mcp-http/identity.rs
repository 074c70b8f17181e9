//! Which calls are the same, over every connection.
use crate::{
    client::{Call, Era, Http, Kind, Seen, random},
    guard::{Shop, Way},
    upstream::{Fault, Upstream},
    wire::until,
};
use serde_json::json;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    thread,
};

pub(crate) fn shop() -> (Upstream, Shop) {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    (upstream, shop)
}

fn codex(url: &str) -> Http {
    Http::open(url, Kind::Codex, Era::Legacy)
}

pub(crate) fn code(seen: &Seen) -> String {
    match seen {
        Seen::Answer(answer) => {
            let error = &answer["result"]["_meta"]["tool-reliability/error"];
            error["code"].as_str().unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

/// A strong id is one call in all sessions, also of a guard that was started again.
#[test]
fn a_strong_id_is_one_call_over_sessions_and_restarts() {
    let (upstream, shop) = shop();
    let mut guard = shop.listen(Way::HttpHttp);
    for kind in [Kind::ClaudeCode, Kind::Codex, Kind::Keyed] {
        let call = Call::new(kind, "pay", &format!("{kind:?}"));
        let first = Http::open(&guard.url, kind, Era::Legacy).once(&call);
        let second = Http::open(&guard.url, kind, Era::Legacy).once(&call);
        guard.kill();
        guard = shop.listen(Way::HttpHttp);
        let third = Http::open(&guard.url, kind, Era::Legacy).once(&call);
        for seen in [first, second, third] {
            assert!(seen.is_success() && seen.text().contains("receipt of"), "{kind:?}: {seen:?}");
        }
        assert_eq!(upstream.executed(&call.order), 1, "{kind:?}");
    }
}

/// Standard input and output, and HTTP: one file, one server, one execution.
#[test]
fn a_strong_id_is_one_call_over_both_fronts() {
    let (upstream, shop) = shop();
    let call = Call::new(Kind::Codex, "pay", "42");
    let first = shop.open(Way::HttpHttp, Kind::Codex, Era::Legacy).once(&call);
    let second = shop.open(Way::StdioHttp, Kind::Codex, Era::Legacy).once(&call);
    assert!(first.is_success() && second.is_success(), "{first:?} {second:?}");
    assert_eq!(upstream.executed("42"), 1);
}

#[test]
fn the_same_id_with_other_arguments_is_a_conflict() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let mut client = codex(&guard.url);
    let call = Call::new(Kind::Codex, "pay", "42");
    assert!(client.once(&call).is_success());
    let other = Call { order: "43".into(), ..call };
    let seen = client.once(&other);
    assert_eq!(code(&seen), "idempotency_conflict", "{seen:?}");
    assert_eq!((upstream.executed("42"), upstream.executed("43")), (1, 0));
}

#[test]
fn a_weak_id_ends_with_its_answer_and_no_one_else_gets_that() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    for credential in ["Bearer a", "Bearer b"] {
        let mut client = codex(&guard.url).with("authorization", credential);
        client.kind = Kind::ClaudeCode;
        let meta = json!({ "claudecode/toolUseId": "functions.pay:0" });
        let call = Call { tool: "pay", order: "42".into(), meta, key: None };
        assert!(client.once(&call).is_success());
        assert!(client.once(&call).is_success());
    }
    assert_eq!(upstream.executed("42"), 4);
}

#[test]
fn two_keys_that_disagree_are_refused_and_a_header_alone_counts() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let client = Http::open(&guard.url, Kind::Keyed, Era::Legacy);
    let call = Call::new(Kind::Keyed, "pay", "42");
    let seen = client.clone().with("idempotency-key", "another").once(&call);
    assert!(!seen.is_success() && !matches!(seen, Seen::Hung | Seen::Cut), "{seen:?}");
    assert_eq!(upstream.executed("42"), 0);
    let key = call.meta["idempotencyKey"].as_str().unwrap().to_owned();
    for key in [key.clone(), format!("\"{key}\"")] {
        let seen = client.clone().with("idempotency-key", &key).once(&call);
        assert!(seen.is_success(), "{key}: {seen:?}");
    }
    assert_eq!(upstream.executed("42"), 1);
    let mut client = client.with("idempotency-key", &random(20));
    let bare = Call { tool: "pay", order: "by header".into(), meta: json!({}), key: None };
    assert!(client.once(&bare).is_success());
    client.begin();
    assert!(client.once(&bare).is_success());
    assert_eq!(upstream.executed("by header"), 1);
}

#[test]
fn another_credential_with_the_same_strong_id_gets_no_answer_and_runs_nothing() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let call = Call::new(Kind::Keyed, "pay", "42");
    let mut owner = codex(&guard.url).with("authorization", "Bearer owner");
    assert!(owner.once(&call).is_success());
    let seen = codex(&guard.url).with("authorization", "Bearer thief").once(&call);
    assert!(!seen.text().contains("receipt"), "{seen:?}");
    assert!(seen.is_in_band_failure() || matches!(seen, Seen::Status { .. }), "{seen:?}");
    assert!(seen.text().contains("with another credential or other arguments is done"), "{seen:?}");
    assert_eq!((code(&seen), upstream.executed("42")), ("idempotency_conflict".into(), 1));
}

/// The call before it was refused with a challenge, so the client has a new token.
#[test]
fn a_refreshed_token_is_the_same_call() {
    use crate::upstream::Auth;
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let mut client =
        Http::open(&guard.url, Kind::ClaudeCode, Era::Legacy).with("authorization", "Bearer old");
    let call = Call::new(Kind::ClaudeCode, "pay", "42");
    upstream.play(Fault::Auth(Auth { status: 401, is_challenge: true }));
    let seen = client.once(&call);
    assert!(seen.is_status(401), "{seen:?}");
    let mut client = client.with("authorization", "Bearer new");
    let seen = client.once(&call);
    assert!(seen.is_success(), "{seen:?}");
    let again = client.once(&call);
    assert!(again.is_success(), "{again:?}");
    assert_eq!(upstream.executed("42"), 1);
}

/// Duplicates wait for the call that runs, and each answer has its own JSON-RPC id.
#[test]
fn a_duplicate_waits_and_gets_the_answer_under_its_own_id() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let call = Call::new(Kind::Codex, "pay", "42");
    upstream.play(Fault::NoHeaders);
    let clients: Vec<_> = (0..3)
        .map(|n| {
            let mut client = codex(&guard.url);
            client.last_id = 100 * n;
            client
        })
        .collect();
    thread::scope(|scope| {
        let wait = |mut client: Http| {
            let call = &call;
            scope.spawn(move || (client.once(call), client.last_id))
        };
        let waiting: Vec<_> = clients.into_iter().map(wait).collect();
        until("it runs", || (upstream.executed("42") == 1).then_some(()));
        upstream.release();
        for one in waiting {
            let (seen, id) = one.join().unwrap();
            let Seen::Answer(answer) = &seen else { panic!("{seen:?}") };
            assert!(seen.is_success() && answer["id"] == id, "{answer}");
        }
    });
    assert_eq!(upstream.executed("42"), 1);
}

/// The server says that it only reads; its caller says that it matters.
#[test]
fn a_call_with_a_key_is_made_once_whatever_the_server_says_of_its_tool() {
    let (upstream, shop) = shop();
    for way in [Way::HttpHttp, Way::StdioHttp] {
        for (fault, seen_again) in [(Fault::None, true), (Fault::Status(503), false)] {
            let mut client = shop.open(way, Kind::Keyed, Era::Legacy);
            let call = Call::new(Kind::Keyed, "balance", &format!("{way:?}{fault:?}"));
            upstream.play(fault);
            client.once(&call);
            assert_eq!(client.once(&call).is_success(), seen_again, "{way:?} {fault:?}");
            assert_eq!(upstream.executed(&call.order), 1, "{way:?} {fault:?}");
        }
    }
}

/// Polling must not stand still.
#[test]
fn a_read_that_has_ended_is_made_again() {
    let (upstream, shop) = shop();
    for way in [Way::HttpHttp, Way::StdioHttp] {
        let mut client = shop.open(way, Kind::Codex, Era::Legacy);
        let call = Call::new(Kind::Codex, "balance", &format!("{way:?}"));
        for _ in 0..3 {
            assert!(client.once(&call).is_success());
        }
        assert_eq!(upstream.executed(&call.order), 3, "{way:?}");
    }
}

/// A model that asks again after a failure, under another id.
#[test]
fn an_unknown_call_bars_equal_ones_unless_they_have_a_new_key() {
    for way in [Way::HttpHttp, Way::StdioHttp] {
        let (upstream, shop) = shop();
        let mut client = shop.open(way, Kind::Codex, Era::Legacy);
        upstream.play(Fault::Dropped);
        assert!(client.once(&Call::new(Kind::Codex, "pay", "42")).is_in_band_failure());
        let seen = client.once(&Call::new(Kind::Codex, "pay", "42"));
        assert_eq!(code(&seen), "outcome_unknown", "{way:?}: {seen:?}");
        assert_eq!(upstream.executed("42"), 1, "{way:?}");
        assert!(client.once(&Call::new(Kind::Codex, "pay", "43")).is_success());
        assert!(client.once(&Call::new(Kind::Keyed, "pay", "42")).is_success());
        assert_eq!(upstream.executed("42"), 2, "{way:?}");
    }
}

/// Two conversations over one guard: one's unknown call does not bar the other's.
#[test]
fn an_unknown_call_of_one_conversation_does_not_bar_another() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let mut client = codex(&guard.url);
    upstream.play(Fault::Dropped);
    assert!(client.once(&Call::new(Kind::Codex, "pay", "42")).is_in_band_failure());
    let mut other = Call::new(Kind::Codex, "pay", "42");
    other.meta["threadId"] = "0199ffff-0000-7c52-9d41-7b1f0a5c2e63".into();
    assert!(codex(&guard.url).once(&other).is_success());
    assert_eq!(upstream.executed("42"), 2);
}

/// A session outlives the guard, and so does a credential: an equal call under another id waits for a person there, too.
#[test]
fn an_unknown_call_of_a_killed_guard_bars_its_equals_in_the_session() {
    for era in [Era::Legacy, Era::Modern] {
        let (upstream, shop) = shop();
        let mut guard = shop.listen(Way::HttpHttp);
        let client = Http::open(&guard.url, Kind::ClaudeCode, era);
        upstream.play(Fault::NoHeaders);
        let call = || Call::new(Kind::ClaudeCode, "pay", "42");
        thread::scope(|scope| {
            let mut first = client.clone();
            let waiting = scope.spawn(move || first.once(&call()));
            until("it runs", || (upstream.executed("42") == 1).then_some(()));
            guard.kill();
            assert!(matches!(waiting.join().unwrap(), Seen::Cut));
        });
        upstream.release();
        let guard = shop.listen(Way::HttpHttp);
        let mut again = Http::new(&guard.url, Kind::ClaudeCode, era);
        (again.session, again.last_id) = (client.session.clone(), 10);
        let seen = again.once(&call());
        assert!(seen.is_in_band_failure() && seen.text().contains("may have run"), "{seen:?}");
        assert_eq!(upstream.executed("42"), 1, "{era:?}");
    }
}

/// A keyless client that sends the very same bytes again in its session: its stream was lost.
#[test]
fn the_same_bytes_in_the_same_session_are_one_call() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let mut client = Http::open(&guard.url, Kind::Keyless, Era::Legacy);
    let call = Call::new(Kind::Keyless, "pay", "42");
    for _ in 0..3 {
        client.last_id = 7;
        assert!(client.once(&call).is_success());
    }
    assert_eq!(upstream.executed("42"), 1);
    // Another id is another call.
    assert!(client.once(&call).is_success());
    assert_eq!(upstream.executed("42"), 2);
}

/// A header may hold any text; what is no text is refused.
#[test]
fn a_key_in_the_header_may_be_of_any_letters() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let client = || Http::open(&guard.url, Kind::Keyless, Era::Legacy);
    let call = Call::new(Kind::Keyless, "pay", "42");
    for _ in 0..2 {
        assert!(client().with("idempotency-key", "zahlung-ü-1").once(&call).is_success());
    }
    assert_eq!(upstream.executed("42"), 1);
}

/// A client that closes its connection and sends the call again at once, on another connection and under another
/// id: faster than the guard sees that the first connection has ended.
#[test]
fn a_keyless_call_that_is_sent_again_at_once_is_one_call() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream).with(["--timeout", "2s"]);
    let guard = shop.listen(Way::HttpHttp);
    let opened = Http::open(&guard.url, Kind::Keyless, Era::Legacy);
    let session = opened.session.clone().unwrap();
    let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
    let orders: Vec<_> = (0..8).map(|number| format!("order {number}")).collect();
    let send = |to: &mut TcpStream, order: &str, id: usize| {
        let params = json!({ "name": "pay", "arguments": { "order": order } });
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        to.write_all(&opened.bytes(&headers, body.to_string().as_bytes())).unwrap();
    };
    let connect = || TcpStream::connect(opened.authority()).unwrap();
    let mut sent = Vec::new();
    for (number, order) in orders.iter().enumerate() {
        let (mut first, mut again) = (connect(), connect());
        upstream.play(Fault::NoHeaders);
        send(&mut first, order, 100 + number);
        until("it runs", || (upstream.executed(order) == 1).then_some(()));
        drop(first);
        send(&mut again, order, 200 + number);
        sent.push(again);
    }
    for mut again in sent {
        let mut answer = [0; 12];
        again.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    for order in &orders {
        assert_eq!(upstream.executed(order), 1, "{order}");
    }
}

/// A call with an id of its own is none of those that were cut off.
#[test]
fn a_call_with_an_id_takes_no_other_calls_place() {
    let (upstream, shop) = shop();
    let guard = shop.listen(Way::HttpHttp);
    let keyless = Call::new(Kind::Keyless, "pay", "42");
    let mut client = Http::open(&guard.url, Kind::Keyless, Era::Legacy);
    let session = client.session.clone().unwrap();
    let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
    let params = json!({ "name": "pay", "arguments": { "order": "42" } });
    let body = json!({ "jsonrpc": "2.0", "id": 500, "method": "tools/call", "params": params });
    upstream.play(Fault::NoHeaders);
    let mut cut = TcpStream::connect(client.authority()).unwrap();
    cut.write_all(&client.bytes(&headers, body.to_string().as_bytes())).unwrap();
    until("it runs", || (upstream.executed("42") == 1).then_some(()));
    drop(cut);
    let mut other = Http::open(&guard.url, Kind::Keyed, Era::Legacy);
    upstream.release();
    assert!(other.once(&Call::new(Kind::Keyed, "pay", "42")).is_success());
    assert!(client.once(&keyless).is_success());
    assert_eq!(upstream.executed("42"), 2);
}

/// A tool that declares which of its params name the payment: one for its session or credential, and no answer for others.
#[test]
fn a_payment_of_one_order_is_made_once_and_its_receipt_is_its_callers() {
    let (upstream, shop) = shop();
    let catalog = shop.path("catalog.toml");
    std::fs::write(&catalog, "[tools.pay]\nkeys = { identity = [\"/order\"] }\n").unwrap();
    let shop = shop.with(["--catalog".into(), catalog]);
    let guard = shop.listen(Way::HttpHttp);
    let pay = |order: &str| Call::new(Kind::Codex, "pay", order);
    let is_refused = |seen: &Seen| {
        assert!(!seen.text().contains("receipt"), "{seen:?}");
        let why = "The same call with another credential or in another session is done [record ";
        assert!(seen.text().contains(why), "{seen:?}");
        assert_eq!(code(seen), "idempotency_conflict");
    };
    for (order, of) in [("42", Some("Bearer owner")), ("43", None)] {
        let with = |credential: Option<&'static str>| match credential {
            Some(credential) => codex(&guard.url).with("authorization", credential),
            None => codex(&guard.url),
        };
        let mut client = with(of);
        for _ in 0..2 {
            let seen = client.once(&pay(order));
            assert!(seen.is_success() && seen.text().contains("receipt of"), "{seen:?}");
        }
        is_refused(&with(Some("Bearer thief")).once(&pay(order)));
        // Another session of the same credential is the same caller; without one nobody knows.
        let other = with(of).once(&pay(order));
        match of {
            Some(_) => assert!(other.text().contains("receipt of"), "{other:?}"),
            None => is_refused(&other),
        }
        assert_eq!(upstream.executed(order), 1);
    }
}
