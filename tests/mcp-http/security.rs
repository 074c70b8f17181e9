//! Who may send requests to the listener: everything here is refused, and nothing runs.
use crate::{
    client::{Call, Era, Http, Kind, ask},
    guard::{Listening, Shop, Way},
    upstream::Upstream,
    wire::until,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
};

struct Front {
    upstream: Upstream,
    shop: Shop,
    guard: Listening,
    /// It has begun a session.
    client: Http,
}

fn front(options: &[&str]) -> Front {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream).with(options);
    let guard = shop.listen(Way::HttpHttp);
    let client = Http::open(&guard.url, Kind::Codex, Era::Legacy);
    Front { upstream, shop, guard, client }
}

impl Front {
    fn body(&self) -> Vec<u8> {
        let params = json!({ "name": "pay", "arguments": { "order": "42" } });
        let body = json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params });
        body.to_string().into_bytes()
    }

    /// A whole request: its head with the session, changed by `change`, and a payment.
    fn send(&self, change: impl FnOnce(String) -> String) -> u16 {
        let session = self.client.session.clone().unwrap();
        let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
        let bytes = self.client.bytes(&headers, &self.body());
        let text = change(String::from_utf8(bytes).unwrap());
        let (head, seen) = ask(self.client.authority(), text.as_bytes(), &json!(77));
        head.unwrap_or_else(|| panic!("no response: {seen:?}")).status()
    }

    fn header(&self, line: &str) -> u16 {
        self.send(|text| text.replacen("\r\n", &format!("\r\n{line}\r\n"), 1))
    }

    fn paid(&self) -> usize {
        self.upstream.executed("42")
    }
}

#[test]
fn the_request_that_these_tests_change_is_a_good_one() {
    let front = front(&[]);
    assert_eq!(front.send(|text| text), 200);
    assert_eq!(front.paid(), 1);
}

#[test]
fn a_foreign_host_is_refused_and_a_named_one_is_not() {
    let front = front(&["--allow-host", "bank.internal"]);
    let host = |name: &str| {
        let own = format!("host: {}", front.client.authority());
        front.send(|text| text.replace(&own, &format!("host: {name}")))
    };
    for foreign in
        ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "bank.internal.evil.example"]
    {
        assert_eq!(host(foreign), 403, "{foreign}");
    }
    assert_eq!(front.paid(), 0);
    for named in ["localhost", "127.0.0.1:9", "[::1]:9", "bank.internal", "BANK.internal:8443"] {
        assert_eq!(host(named), 200, "{named}");
    }
}

#[test]
fn a_foreign_origin_is_refused_before_the_body_and_a_listed_one_is_not() {
    let front = front(&["--allow-origin", "https://ui.example"]);
    for foreign in ["https://evil.example", "null", "http://127.0.0.1:9", "https://ui.example.evil"]
    {
        assert_eq!(front.header(&format!("origin: {foreign}")), 403, "{foreign}");
    }
    assert_eq!(front.header("sec-fetch-site: cross-site"), 403);
    // The body never comes, and the refusal does.
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\norigin: https://evil.example\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n";
    let (head, seen) = ask(front.client.authority(), head.as_bytes(), &json!(77));
    assert_eq!(head.unwrap().status(), 403, "{seen:?}");
    assert_eq!(front.paid(), 0);
    assert_eq!(front.header("origin: https://ui.example"), 200);
    let last = front.upstream.seen("tools/call").pop().unwrap();
    assert_eq!(last.head.header("origin"), None, "it is checked, and not sent on");
}

/// A browser asks before it sends a page's request, and asks without the token.
#[test]
fn the_pages_of_a_listed_origin_may_ask_and_read() {
    let front = front(&["--allow-origin", "https://ui.example"]);
    let asked = |origin: &str| {
        let head = format!(
            "OPTIONS /mcp HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\naccess-control-request-method: POST\r\naccess-control-request-headers: content-type,mcp-session-id\r\n\r\n"
        );
        ask(front.client.authority(), head.as_bytes(), &json!(77)).0.unwrap()
    };
    let head = asked("https://ui.example");
    assert_eq!(
        (head.status(), head.header("access-control-allow-origin")),
        (204, Some("https://ui.example"))
    );
    assert_eq!(head.header("access-control-allow-headers"), Some("content-type,mcp-session-id"));
    let head = asked("https://evil.example");
    assert_eq!((head.status(), head.header("access-control-allow-origin")), (403, None));
    assert!(front.upstream.seen("OPTIONS").is_empty());
}

#[test]
fn a_token_is_asked_for_and_kept_from_the_upstream() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "s3cret-0123456789abcdef\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream).with([std::ffi::OsString::from("--token-file"), file.into()]);
    let guard = shop.listen(Way::HttpHttp);
    let client = Http::new(&guard.url, Kind::Codex, Era::Legacy);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    for mut client in [
        client.clone(),
        client.clone().with("x-tool-guard-token", "s3cret-0123456789abcdeX"),
        client.clone().with("authorization", "Bearer s3cret-0123456789abcdef"),
    ] {
        let seen = client.post(&hello);
        assert!(seen.is_status(401), "{seen:?}");
    }
    assert!(upstream.story().is_empty(), "{:?}", upstream.story());
    let mut client = client
        .with("x-tool-guard-token", "s3cret-0123456789abcdef")
        .with("authorization", "Bearer of the upstream");
    client.begin();
    assert!(client.once(&Call::new(Kind::Codex, "pay", "42")).is_success());
    let seen = upstream.seen("tools/call").pop().unwrap();
    assert_eq!(seen.head.header("authorization"), Some("Bearer of the upstream"));
    assert_eq!(seen.head.header("x-tool-guard-token"), None);
    let said = shop.logs() + &shop.said();
    assert!(!said.contains("s3cret-0123456789"), "{said}");
}

#[test]
fn addresses_of_other_machines_need_a_token_and_tls() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    for options in [&["--listen", "0.0.0.0:0"][..], &["--listen", "[::]:0"]] {
        let shop = Shop::over(&upstream).with(options);
        let output = shop.stdio().stdin(std::process::Stdio::null()).output().unwrap();
        assert!(!output.status.success());
        assert!(shop.said().contains("--behind-tls"), "{}", shop.said());
    }
    drop(shop);
}

#[test]
fn plain_http_to_other_machines_is_refused_at_the_start() {
    let shop = Shop::at("http://192.0.2.1/mcp");
    let output = shop.stdio().stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", shop.said());
    assert!(shop.said().contains("--insecure-http"), "{}", shop.said());
}

#[test]
fn headers_that_occur_twice_are_refused() {
    let front = front(&[]);
    for line in [
        "content-length: 5",
        "mcp-session-id: another",
        "mcp-protocol-version: 2025-03-26",
        "host: localhost",
    ] {
        assert_eq!(front.header(line), 400, "{line}");
    }
    assert_eq!(front.header("authorization: a\r\nauthorization: b"), 400);
    assert_eq!(front.header("mcp-method: tools/call\r\nmcp-method: tools/call"), 400);
    assert_eq!(front.header("mcp-param-x: a\r\nmcp-param-x: b"), 400);
    assert_eq!(front.header("transfer-encoding: chunked"), 400);
    assert_eq!(front.paid(), 0);
}

#[test]
fn other_content_types_and_versions_of_http_are_refused() {
    let front = front(&[]);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/json-rpc", ""] {
        let other = format!("content-type: {kind}");
        let status = front.send(|text| text.replace("content-type: application/json", &other));
        assert_eq!(status, 400, "{kind}");
    }
    let status = front.send(|text| text.replace("content-type: application/json\r\n", ""));
    assert_eq!(status, 400);
    assert_eq!(front.send(|text| text.replace("HTTP/1.1", "HTTP/1.0")), 400);
    assert_eq!(front.paid(), 0);
    let charset = "content-type: Application/JSON; charset=utf-8";
    assert_eq!(front.send(|text| text.replace("content-type: application/json", charset)), 200);
}

#[test]
fn heads_and_bodies_have_limits() {
    let front = front(&["--max-line", "4096"]);
    let status = front.header(&format!("x-long: {}", "x".repeat(40_000)));
    assert!([400, 431].contains(&status), "{status}");
    let long = json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call",
                       "params": { "name": "pay", "arguments": { "order": "42", "x": "y".repeat(9_000) } } });
    let session = front.client.session.clone().unwrap();
    let bytes = front.client.bytes(&[("mcp-session-id", &session)], long.to_string().as_bytes());
    let (head, seen) = ask(front.client.authority(), &bytes, &json!(77));
    let status = head.unwrap().status();
    assert!([400, 413].contains(&status), "{status} {seen:?}");
    assert_eq!(front.paid(), 0);
}

#[test]
fn a_batch_with_a_call_is_refused_and_another_passes() {
    let front = front(&[]);
    let session = front.client.session.clone().unwrap();
    let call: Value = serde_json::from_slice(&front.body()).unwrap();
    let ping = json!({ "jsonrpc": "2.0", "id": 78, "method": "ping" });
    let send = |body: Value| {
        let bytes =
            front.client.bytes(&[("mcp-session-id", &session)], body.to_string().as_bytes());
        ask(front.client.authority(), &bytes, &json!(77)).0.unwrap().status()
    };
    assert_eq!(send(json!([ping, call])), 400);
    assert_eq!(front.paid(), 0);
    // The scripted server knows no batches, and says so with its 202.
    assert_eq!(send(json!([ping])), 202);
}

/// The longest idle one is closed for each that comes past the limit.
#[test]
fn idle_connections_keep_nobody_out() {
    let front = front(&[]);
    let connect = || TcpStream::connect(front.client.authority()).unwrap();
    let mut first = connect();
    let held: Vec<_> = (0..1024).map(|_| connect()).collect();
    assert_eq!(front.send(|text| text), 200);
    assert_eq!(first.read(&mut [0]).unwrap_or_default(), 0);
    drop(held);
}

/// Connections that say nothing, heads and bodies that trickle, and answers that nobody reads.
#[test]
fn slow_and_idle_clients_by_the_hundred_stop_neither_a_payment_nor_the_operator() {
    let front = front(&["--admin", "127.0.0.1:0"]);
    let admin = until("the operator's page", || {
        let logs = front.shop.logs();
        let mut events = logs.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.find(|event| event["event"] == "admin_listening")
    });
    let admin = admin["address"].as_str().unwrap().to_owned();
    let session = front.client.session.clone().unwrap();
    let order = "9".repeat(2 << 20);
    let arguments = json!({ "name": "balance", "arguments": { "order": order } });
    let mut held = Vec::new();
    for number in 0..300 {
        for (address, kinds) in [(front.client.authority(), 4), (&*admin, 2)] {
            let mut connection = TcpStream::connect(address).unwrap();
            let begun = match number % kinds {
                0 => String::new(),
                1 => format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\n"),
                2 => format!(
                    "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n{{"
                ),
                _ if number < 80 => {
                    let call = json!({ "jsonrpc": "2.0", "id": number + 1000, "method": "tools/call", "params": arguments });
                    let headers =
                        [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
                    let bytes = front.client.bytes(&headers, call.to_string().as_bytes());
                    String::from_utf8(bytes).unwrap()
                }
                _ => String::new(),
            };
            connection.write_all(begun.as_bytes()).unwrap();
            held.push(connection);
        }
    }
    assert_eq!(front.send(|text| text), 200);
    assert_eq!(front.paid(), 1);
    let token = fs::read_to_string(front.shop.path(".local/state/tool-guard/admin-token")).unwrap();
    let get = format!(
        "GET /debug/tool-reliability HTTP/1.1\r\nhost: {admin}\r\nauthorization: Bearer {}\r\n\r\n",
        token.trim()
    );
    let (head, seen) = ask(&admin, get.as_bytes(), &json!(0));
    assert_eq!(head.unwrap().status(), 200, "{seen:?}");
    drop(held);
}

#[test]
fn another_path_is_not_found_and_metadata_of_oauth_passes() {
    let front = front(&[]);
    assert_eq!(front.send(|text| text.replacen("/mcp ", "/other ", 1)), 404);
    assert_eq!(front.paid(), 0);
    let get = "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let before = front.upstream.seen("GET").len();
    ask(front.client.authority(), get.as_bytes(), &json!(0));
    let seen = front.upstream.seen("GET");
    assert_eq!(seen.len(), before + 1);
    assert!(seen[before].head.first.contains("/.well-known/oauth-protected-resource/mcp"));
    let _ = (&front.guard, &front.shop);
}

/// What the guard reads as no call, another reader may take for one.
#[test]
fn bodies_in_other_codings_are_refused() {
    let front = front(&[]);
    for line in ["content-encoding: gzip", "content-encoding: identity, br"] {
        assert_eq!(front.header(line), 400, "{line}");
    }
    let charset = "content-type: application/json; charset=utf-16le";
    assert_eq!(front.send(|text| text.replace("content-type: application/json", charset)), 400);
    assert_eq!(front.paid(), 0);
}

#[test]
fn a_call_does_not_pass_beside_the_endpoint() {
    let front = front(&[]);
    for path in ["/.well-known/../mcp", "/.well-known/%2e%2e/mcp", "/.well-known/..%2Fmcp"] {
        assert_eq!(front.send(|text| text.replacen("/mcp", path, 1)), 404, "{path}");
    }
    assert_eq!(front.send(|text| text.replacen("/mcp", "/.well-known/mcp", 1)), 405);
    assert_eq!(front.paid(), 0);
}

#[test]
fn long_bodies_that_do_not_end_share_a_budget() {
    let front = front(&[]);
    let length = 60 << 20;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    let part = vec![b' '; 48 << 20];
    let sent = (0..8).map(|_| {
        let mut connection = TcpStream::connect(front.client.authority()).unwrap();
        let sent = connection.write_all(head.as_bytes());
        sent.and_then(|()| connection.write_all(&part)).map(|()| connection)
    });
    let sent: Vec<_> = sent.collect();
    // 256 MiB take five of them, and what the system holds of one more.
    let taken = sent.iter().filter(|it| it.is_ok()).count();
    assert!((5..=6).contains(&taken), "{taken}");
    assert_eq!(front.send(|text| text), 200);
}

#[test]
fn requests_that_are_refused_fill_no_log() {
    let (front, begun) = (front(&[]), crate::wire::now());
    for _ in 0..200 {
        assert_eq!(front.header("origin: https://evil.example"), 403);
    }
    let lines = front.shop.logs().matches("mcp_refused").count() as u64;
    assert!((1..=10 * (begun.elapsed().as_secs() + 2)).contains(&lines), "{lines} lines");
}
