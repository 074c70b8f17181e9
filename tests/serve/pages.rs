//! A web page must not be able to pay.
use super::{front::HttpTool, shop};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    time::Duration,
};

const PAYMENT: &str = r#"{"tool":"pay","action":"","params":{"cents":500}}"#;

/// What a browser sends for a page without asking first: forms and `no-cors` fetches.
#[test]
fn no_simple_request_of_a_page_pays() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&["--allow-origin", "https://console.example"]);
    let kinds =
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""];
    for kind in kinds {
        let header = format!("content-type:{}{kind}", if kind.is_empty() { "" } else { " " });
        for more in [
            &[][..],
            &["-H", "origin: null"],
            &["-H", "sec-fetch-site: cross-site"],
            &["-H", "origin: https://console.example"],
        ] {
            let all = [&["-H", &header, "-d", PAYMENT][..], more].concat();
            let (status, said) = front.curl("/call", &all);
            assert!([400, 403].contains(&status), "{kind} {more:?}: {status} {said}");
            assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["ran"], "no");
        }
    }
    let json = ["-H", "content-type: application/json", "-d", PAYMENT];
    for more in [
        ["-H", "origin: https://evil.example"],
        ["-H", "origin: http://localhost"],
        ["-H", "host: evil.example"],
        ["-H", "sec-fetch-site: same-site"],
    ] {
        assert_eq!(front.curl("/call", &[&json[..], &more].concat()).0, 403, "{more:?}");
    }
    // A page asks first whether it may; nothing says that it may.
    let (status, _) = front.curl("/call", &["-X", "OPTIONS", "-H", "origin: https://evil.example"]);
    assert_eq!((status, tool.count()), (403, 0));
    let listed = [&json[..], &["-H", "origin: https://console.example"]].concat();
    assert_eq!((front.curl("/call", &listed).0, tool.count()), (200, 1));
}

#[test]
fn who_has_no_token_may_nothing() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    fs::write(shop.path("token"), "0123456789abcdef\n").unwrap();
    fs::set_permissions(shop.path("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let token = shop.path("token").display().to_string();
    let front = shop.open(&["--token-file", &token]);
    let json = ["-H", "content-type: application/json", "-d", PAYMENT];
    for more in [
        &[][..],
        &["-H", "x-tool-guard-token: 0123456789abcdeX"],
        &["-H", "authorization: Bearer 0123456789abcdef"],
    ] {
        assert_eq!(front.curl("/call", &[&json[..], more].concat()).0, 401);
    }
    assert_eq!((front.curl("/tools", &[]).0, tool.count()), (401, 0));
    let with = [&json[..], &["-H", "x-tool-guard-token: 0123456789abcdef"]].concat();
    assert_eq!((front.curl("/call", &with).0, tool.count()), (200, 1));
}

/// Sends these bytes as they are, and reads the first line of the answer.
fn raw(at: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(at.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A server may close before it has read all.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn what_could_mean_two_requests_is_none() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&["--max-body", "4096"]);
    let length = PAYMENT.len();
    let request = |headers: &str| {
        format!(
            "POST /call HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\r\n{PAYMENT}"
        )
    };
    for (headers, wanted) in [
        (format!("host: localhost\r\nhost: localhost\r\ncontent-length: {length}\r\n"), "400"),
        (format!("host: localhost\r\ncontent-length: {length}\r\ncontent-length: 5\r\n"), "400"),
        (
            format!(
                "host: localhost\r\ncontent-length: {length}\r\ntransfer-encoding: chunked\r\n"
            ),
            "400",
        ),
        (
            format!("host: localhost\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n"),
            "400",
        ),
        (format!("content-length: {length}\r\n"), "403"),
        ("host: localhost\r\ncontent-length: 5000\r\n".into(), "413"),
        (
            format!("host: localhost\r\nx: {}\r\ncontent-length: {length}\r\n", "x".repeat(40_000)),
            "431",
        ),
    ] {
        let said = raw(&front.at, request(&headers).as_bytes());
        assert!(said.contains(wanted), "{}: {said}", &headers[..headers.len().min(80)]);
    }
    let absolute = format!(
        "POST http://evil.example/call HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{PAYMENT}"
    );
    assert!(raw(&front.at, absolute.as_bytes()).contains("400"));
    let old = format!(
        "POST /call HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{PAYMENT}"
    );
    assert!(raw(&front.at, old.as_bytes()).contains("400"));
    assert_eq!(tool.count(), 0);
    let good = format!("host: localhost\r\ncontent-length: {length}\r\n");
    assert!(raw(&front.at, request(&good).as_bytes()).contains("200"));
    assert_eq!(tool.count(), 1);
    // Paths and methods that are not there.
    for (path, options, wanted) in [
        ("/", &[][..], 404),
        ("/call", &[], 405),
        ("/tools", &["-X", "POST"], 405),
        ("/cancel", &["-H", "content-type: application/json", "-d", "{}"], 400),
    ] {
        let (status, said) = front.curl(path, options);
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((status, &said["ran"]), (wanted, &json!("no")), "{path}");
    }
}
