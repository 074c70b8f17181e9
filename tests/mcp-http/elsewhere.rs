//! Servers that are elsewhere, ask for a login, or speak the transport before Streamable HTTP: each is named to the client
//! and in the log.
use crate::{
    client::{Call, Era, Http, Kind, Seen, Stdio},
    guard::{Shop, Way},
    upstream::Upstream,
    wire::{Head, message, until},
};
use serde_json::json;

fn path(head: &Head) -> &str {
    head.first.split(' ').nth(1).unwrap_or_default()
}

fn redirect(status: &str, to: &str) -> Vec<u8> {
    message(&format!("HTTP/1.1 {status}"), &[("location", to)], b"")
}

/// What a client of this way is told of its `initialize`.
fn refused(shop: &Shop, way: Way) -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let (mut guard, mut client) = (None, None);
    let seen = if way == Way::HttpHttp {
        let guard = guard.insert(shop.listen(way));
        Http::new(&guard.url, Kind::Keyed, Era::Legacy).post(&hello)
    } else {
        client.insert(Stdio::spawn(shop.stdio(), Era::Legacy)).begin()
    };
    until("it is logged", || shop.logs().contains("upstream_elsewhere").then_some(()));
    match seen {
        Seen::Status { body, .. } => body,
        seen => seen.text(),
    }
}

/// Web frameworks redirect an endpoint to the same path with a slash at its end.
#[test]
fn a_redirect_to_the_same_path_with_a_slash_is_followed_for_good() {
    for (way, era) in [
        (Way::StdioHttp, Era::Legacy),
        (Way::HttpHttp, Era::Legacy),
        (Way::StdioHttp, Era::Modern),
        (Way::HttpHttp, Era::Modern),
    ] {
        let upstream = Upstream::start();
        upstream.answer_instead(|head| {
            (path(head) == "/mcp").then(|| redirect("307 Temporary Redirect", "/mcp/"))
        });
        let shop = Shop::over(&upstream);
        let mut client = shop.open(way, Kind::Keyed, era);
        let call = Call::new(Kind::Keyed, "pay", "42");
        assert!(client.once(&call).is_success() && client.once(&call).is_success(), "{way:?}");
        assert_eq!(upstream.executed("42"), 1, "{way:?} {era:?}");
        let before = ["initialize", "server/discover", "tools/list"];
        let before: Vec<_> = before.iter().flat_map(|what| upstream.seen(what)).collect();
        let redirected = before.iter().filter(|seen| path(&seen.head) == "/mcp").count();
        assert_eq!(redirected, 1, "{way:?} {era:?}");
        let calls = upstream.seen("tools/call");
        assert!(calls.iter().all(|seen| path(&seen.head) == "/mcp/"), "{way:?} {era:?}");
    }
}

#[test]
fn a_redirect_elsewhere_is_named_and_reaches_no_client() {
    for response in [
        |_: &Head| Some(redirect("307 Temporary Redirect", "http://127.0.0.1:9/mcp/?key=s3cret")),
        |_: &Head| Some(redirect("308 Permanent Redirect", "http://127.0.0.1:9/mcp/")),
        |_: &Head| Some(redirect("301 Moved Permanently", "http://127.0.0.1:9/mcp/")),
    ] {
        let upstream = Upstream::start();
        upstream.answer_instead(response);
        let shop = Shop::over(&upstream);
        for way in [Way::StdioHttp, Way::HttpHttp] {
            let said = refused(&shop, way);
            assert!(said.contains("redirects to http://127.0.0.1:9/mcp/ ("), "{way:?}: {said}");
        }
        let logs = shop.logs();
        assert!(!logs.contains("s3cret"), "{logs}");
    }
}

/// The metadata of such a server names the server, so a client refuses it as that of the guard.
#[test]
fn a_login_that_cannot_be_done_through_the_guard_is_named() {
    let upstream = Upstream::start();
    upstream.answer_instead(|head| {
        let challenge = r#"Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp""#;
        let headers = [("www-authenticate", challenge)];
        let is_known = head.header("authorization") == Some("Bearer good");
        (!is_known).then(|| message("HTTP/1.1 401 Unauthorized", &headers, b"{}"))
    });
    let shop = Shop::over(&upstream);
    for way in [Way::StdioHttp, Way::HttpHttp] {
        let said = refused(&shop, way);
        assert!(said.contains("asks for a login (OAuth)"), "{way:?}: {said}");
    }
    let guard = shop.listen(Way::HttpHttp);
    let client = Http::new(&guard.url, Kind::Keyed, Era::Legacy);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let seen = client.clone().with("authorization", "Bearer old").post(&hello);
    assert!(seen.is_status(401), "a client that has a token hears that it is refused: {seen:?}");
    let mut client = client.with("authorization", "Bearer good");
    client.begin();
    assert!(client.once(&Call::new(Kind::Keyed, "pay", "42")).is_success());
}

/// Where the guard has the name that the metadata names, logins work.
#[test]
fn a_login_at_the_guards_own_name_passes() {
    let upstream = Upstream::start();
    upstream.answer_instead(|_| {
        let challenge = r#"Bearer resource_metadata="https://bank.example/.well-known/oauth-protected-resource/mcp""#;
        Some(message("HTTP/1.1 401 Unauthorized", &[("www-authenticate", challenge)], b"{}"))
    });
    let shop = Shop::over(&upstream).with(["--allow-host", "bank.example"]);
    let guard = shop.listen(Way::HttpHttp);
    let client = Http::new(&guard.url, Kind::Keyed, Era::Legacy);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let bytes = client.bytes(&[], hello.to_string().as_bytes());
    let own = format!("host: {}", client.authority());
    let text = String::from_utf8(bytes).unwrap().replace(&own, "host: bank.example");
    let (head, _) = crate::client::ask(client.authority(), text.as_bytes(), &json!(1));
    let head = head.unwrap();
    assert_eq!(head.status(), 401);
    assert!(head.header("www-authenticate").is_some());
}

#[test]
fn a_server_of_the_transport_before_is_named() {
    let upstream = Upstream::start();
    upstream.answer_instead(|head| {
        Some(match head.method() {
            "GET" => {
                let headers = [("content-type", "text/event-stream")];
                message("HTTP/1.1 200 OK", &headers, b"event: endpoint\ndata: /messages?id=1\n\n")
            }
            _ => message("HTTP/1.1 405 Method Not Allowed", &[("allow", "GET")], b""),
        })
    });
    let shop = Shop::over(&upstream);
    for way in [Way::StdioHttp, Way::HttpHttp] {
        let said = refused(&shop, way);
        assert!(said.contains("HTTP with SSE"), "{way:?}: {said}");
    }
}

/// Nothing is changed before it is known that the client keeps its server.
#[test]
fn a_server_that_asks_for_a_login_is_not_installed() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let file = shop.path(".claude.json");
    let server = json!({ "type": "http", "url": upstream.url() });
    let before = json!({ "mcpServers": { "bank": server } }).to_string();
    std::fs::write(&file, &before).unwrap();
    upstream.answer_instead(|_| {
        let challenge = [("www-authenticate", "Bearer realm=\"bank\"")];
        Some(message("HTTP/1.1 401 Unauthorized", &challenge, b"{}"))
    });
    let (_, said) = shop.install();
    assert!(said.contains("is left as it is") && said.contains("login (OAuth)"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);

    upstream.answer_instead(|_| None);
    let (code, said) = shop.install();
    assert!(code == 0 && said.contains("guarded"), "{said}");
    let sessions = (upstream.seen("initialize").len(), upstream.seen("DELETE").len());
    assert_eq!(sessions, (2, 1), "the session that asked is ended");
}
