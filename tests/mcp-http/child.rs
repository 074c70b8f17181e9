//! A server on standard input and output, with HTTP in front.
use crate::{
    client::{Call, Era, Http, Kind, Seen, ask},
    guard::{Shop, Way, terminate},
    wire::{now, until},
};
use serde_json::json;
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::Duration,
};

pub(crate) fn paid(shop: &Shop, order: &str) -> usize {
    let ledger = fs::read_to_string(shop.path("ledger")).unwrap_or_default();
    ledger.lines().filter(|line| *line == order).count()
}

#[test]
fn a_payment_is_made_once_for_each_intended_one() {
    let shop = Shop::over_child();
    for kind in Kind::ALL {
        let mut client = shop.open(Way::HttpStdio, kind, Era::Legacy);
        let order = format!("{kind:?}");
        let seen = client.call(&Call::new(kind, "pay", &order));
        assert!(seen[0].is_success() && seen[0].text().contains("receipt of"), "{seen:?}");
        assert_eq!(paid(&shop, &order), 1);
    }
}

/// In a new session, so with a child of its own.
#[test]
fn a_strong_id_is_one_call_in_all_sessions() {
    let shop = Shop::over_child();
    let guard = shop.listen(Way::HttpStdio);
    for kind in [Kind::ClaudeCode, Kind::Codex, Kind::Keyed] {
        let call = Call::new(kind, "pay", &format!("{kind:?}"));
        for _ in 0..2 {
            let seen = Http::open(&guard.url, kind, Era::Legacy).once(&call);
            assert!(seen.is_success(), "{kind:?}: {seen:?}");
        }
        assert_eq!(paid(&shop, &call.order), 1, "{kind:?}");
    }
}

fn crash(kind: Kind) {
    let shop = Shop::over_child();
    let mut client = shop.open(Way::HttpStdio, kind, Era::Legacy);
    let call = Call::new(kind, "pay", "crash");
    let seen = client.call(&call);
    assert!(seen.len() == 1 && seen[0].is_in_band_failure(), "{kind:?}: {seen:?}");
    assert!(seen[0].text().contains("may have run"), "{kind:?}: {seen:?}");
    assert_eq!(paid(&shop, "crash"), 1, "{kind:?}");
    // The session has ended with its child; the client begins another.
    let again = client.call(&call);
    let last = again.last().unwrap();
    assert!(
        last.is_in_band_failure() || matches!(last, Seen::Status { status: 404, .. }),
        "{kind:?}: {again:?}"
    );
    if kind != Kind::Keyless {
        assert!(
            again.iter().any(|seen| seen.text().contains("may have run")),
            "{kind:?}: {again:?}"
        );
        assert_eq!(paid(&shop, "crash"), 1, "{kind:?}");
    }
}

#[test]
fn child_crash_claude_code() {
    crash(Kind::ClaudeCode);
}

#[test]
fn child_crash_codex() {
    crash(Kind::Codex);
}

#[test]
fn child_crash_keyed() {
    crash(Kind::Keyed);
}

#[test]
fn a_child_that_never_answers_is_given_up() {
    let shop = Shop::over_child().with(["--timeout", "1s"]);
    let mut client = shop.open(Way::HttpStdio, Kind::Codex, Era::Legacy);
    let seen = client.call(&Call::new(Kind::Codex, "pay", "hang"));
    assert!(seen.len() == 1 && seen[0].is_in_band_failure(), "{seen:?}");
    assert!(seen[0].text().contains("may have run"), "{seen:?}");
    assert_eq!(paid(&shop, "hang"), 1);
}

/// Each session has its child, and knows no other.
#[test]
fn sessions_are_apart_and_end_by_delete() {
    let shop = Shop::over_child();
    let guard = shop.listen(Way::HttpStdio);
    let mut one = Http::open(&guard.url, Kind::Codex, Era::Legacy);
    let mut two = Http::open(&guard.url, Kind::Codex, Era::Legacy);
    assert_ne!(one.session, two.session);
    assert!(one.session.as_ref().unwrap().len() >= 22, "128 random bits: {:?}", one.session);
    let pid = |client: &mut Http| client.once(&Call::new(Kind::Codex, "pid", "")).text();
    let (first, second) = (pid(&mut one), pid(&mut two));
    assert_ne!(first, second);
    let session = one.session.clone().unwrap();
    let delete =
        format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {session}\r\n\r\n");
    let status = ask(one.authority(), delete.as_bytes(), &json!(0)).0.unwrap().status();
    assert!([200, 202, 204].contains(&status), "{status}");
    let pid_of = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    until("the child has ended", || {
        (!fs::exists(format!("/proc/{}", pid_of(&first))).unwrap()).then_some(())
    });
    assert!(one.once(&Call::new(Kind::Codex, "pay", "1")).is_status(404));
    assert_eq!(pid(&mut two), second);
    assert_eq!(paid(&shop, "1"), 0);
}

/// A session belongs to the credential that began it.
#[test]
fn another_credential_cannot_use_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Shop::over_child();
    let guard = shop.listen(Way::HttpStdio);
    let owner = Http::open(&guard.url, Kind::Codex, Era::Legacy);
    let mut thief = owner.clone().with("mcp-session-id", "0123456789abcdef0123456789abcdef");
    thief.session = None;
    assert!(thief.once(&Call::new(Kind::Codex, "pay", "stolen")).is_status(404));
    thief.headers.clear();
    let seen = thief.once(&Call::new(Kind::Codex, "pay", "stolen"));
    assert!(matches!(seen, Seen::Status { status: 400 | 404, .. }), "{seen:?}");
    assert_eq!(paid(&shop, "stolen"), 0);
    drop(folder);
}

#[test]
fn a_guard_that_is_killed_leaves_no_child_and_pays_no_second_time() {
    let shop = Shop::over_child();
    let mut guard = shop.listen(Way::HttpStdio);
    let mut client = Http::open(&guard.url, Kind::Codex, Era::Legacy);
    let pid: String = client.once(&Call::new(Kind::Codex, "pid", "")).text();
    let pid: String = pid.chars().filter(char::is_ascii_digit).collect();
    let call = Call::new(Kind::Codex, "pay", "hang");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.once(&call));
        until("it is executed", || (paid(&shop, "hang") == 1).then_some(()));
        guard.kill();
        assert!(matches!(waiting.join().unwrap(), Seen::Cut));
    });
    until("the child has ended", || (!fs::exists(format!("/proc/{pid}")).unwrap()).then_some(()));
    let guard = shop.listen(Way::HttpStdio);
    let seen = Http::open(&guard.url, Kind::Codex, Era::Legacy).once(&call);
    assert!(seen.is_in_band_failure() && seen.text().contains("may have run"), "{seen:?}");
    assert_eq!(paid(&shop, "hang"), 1);
}

/// The stream of such a client can be resumed, so the guard reads its answer on; the client was cut off all the same.
#[test]
fn a_keyless_call_whose_stream_was_cut_is_one_call() {
    let shop = Shop::over_child().with(["--timeout", "2s"]);
    let guard = shop.listen(Way::HttpStdio);
    let opened = Http::open(&guard.url, Kind::Keyless, Era::Legacy);
    let session = opened.session.clone().unwrap();
    let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
    let send = |id: u32| {
        let params = json!({ "name": "pay", "arguments": { "order": "hang" } });
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let mut stream = TcpStream::connect(opened.authority()).unwrap();
        stream.write_all(&opened.bytes(&headers, body.to_string().as_bytes())).unwrap();
        stream
    };
    let mut first = send(100);
    // The stream has begun, with the id of an event.
    let mut begun = [0; 12];
    first.read_exact(&mut begun).unwrap();
    until("it runs", || (paid(&shop, "hang") == 1).then_some(()));
    drop(first);
    // A repeat waits no longer than a call may take: on a busy machine the first has not ended then.
    let mut said = String::new();
    for id in 101.. {
        let mut again = BufReader::new(send(id));
        said.clear();
        while !said.contains("may have run") && !said.contains("in flight") {
            assert!(again.read_line(&mut said).unwrap() > 0, "{said}");
        }
        if said.contains("may have run") {
            break;
        }
    }
    assert_eq!(paid(&shop, "hang"), 1);
}

/// Cancelled calls that the server never answers take no place of those that follow.
#[test]
fn cancelled_calls_leave_their_places_in_the_session() {
    let shop = Shop::over_child();
    let guard = shop.listen(Way::HttpStdio);
    let mut client = Http::open(&guard.url, Kind::Keyed, Era::Legacy);
    thread::scope(|scope| {
        let mut calls = Vec::new();
        for number in 1..=64 {
            let mut one = client.clone();
            one.last_id = 1000 + number;
            let order = format!("{number}-hang");
            calls.push(scope.spawn(move || one.once(&Call::new(Kind::Keyed, "pay", &order))));
        }
        for number in 1..=64 {
            until("it runs", || (paid(&shop, &format!("{number}-hang")) == 1).then_some(()));
        }
        let full = client.request("ping", json!({}));
        assert!(full.is_status(503), "{full:?}");
        let full = client.once(&Call::new(Kind::Keyed, "pay", "65"));
        assert!(full.is_status(503) && paid(&shop, "65") == 0, "{full:?}");
        for number in 1..=64 {
            let params = json!({ "requestId": 1001 + number });
            let note =
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            assert!(client.post(&note).is_status(202));
        }
        until("there is a place", || client.request("ping", json!({})).is_success().then_some(()));
        // Their streams end without an answer.
        for call in calls {
            assert!(matches!(call.join().unwrap(), Seen::Cut));
        }
    });
}

/// Its stream can be resumed, and the server's question is asked where the client listens.
#[test]
fn a_question_is_asked_on_the_stream_that_is_open() {
    let shop = Shop::over_child();
    let guard = shop.listen(Way::HttpStdio);
    let opened = Http::open(&guard.url, Kind::Keyless, Era::Legacy);
    let session = opened.session.clone().unwrap();
    let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
    let mut listening = TcpStream::connect(opened.authority()).unwrap();
    let head = "accept: text/event-stream\r\nhost: localhost\r\nmcp-protocol-version: 2025-11-25";
    write!(listening, "GET /mcp HTTP/1.1\r\n{head}\r\nmcp-session-id: {session}\r\n\r\n").unwrap();
    let mut listening = BufReader::new(listening);
    let mut line = String::new();
    while !line.contains("id:") {
        assert!(listening.read_line(&mut line).unwrap() > 0);
    }
    let params = json!({ "name": "pay", "arguments": { "order": "hang" } });
    let body = json!({ "jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": params });
    let mut call = TcpStream::connect(opened.authority()).unwrap();
    call.write_all(&opened.bytes(&headers, body.to_string().as_bytes())).unwrap();
    until("it runs", || (paid(&shop, "hang") == 1).then_some(()));
    drop(call);
    let short = Some(Duration::from_millis(100));
    listening.get_ref().set_read_timeout(short).unwrap();
    until("it is asked there", || {
        // Until the guard knows that the client has left, it is asked on the stream that was cut.
        opened.clone().post(&json!({ "jsonrpc": "2.0", "method": "notifications/ask" }));
        let _ = listening.read_line(&mut line);
        line.contains("roots/list").then_some(())
    });
}

/// Calls that run have 10 s; a stream on which nothing may ever come does not.
#[test]
fn a_stream_that_only_listens_does_not_hold_up_the_end() {
    let shop = Shop::over_child();
    let mut guard = shop.listen(Way::HttpStdio);
    let opened = Http::open(&guard.url, Kind::Keyless, Era::Legacy);
    let session = opened.session.clone().unwrap();
    let mut listening = TcpStream::connect(opened.authority()).unwrap();
    let head = "accept: text/event-stream\r\nhost: localhost\r\nmcp-protocol-version: 2025-11-25";
    write!(listening, "GET /mcp HTTP/1.1\r\n{head}\r\nmcp-session-id: {session}\r\n\r\n").unwrap();
    listening.read_exact(&mut [0; 12]).unwrap();
    let since = now();
    terminate(&guard.child);
    listening.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(guard.child.wait().unwrap().code(), Some(128 + 15));
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
}

/// What a command that several clients share says of no request may be of another client's.
#[test]
fn what_a_shared_command_says_of_no_request_goes_to_its_only_client() {
    let said = |others: &[(&str, &str)]| {
        let shop = Shop::over_child();
        let guard = shop.listen(Way::HttpStdio);
        let client = |(name, value): (&str, &str)| {
            Http::new(&guard.url, Kind::Keyless, Era::Modern).with(name, value)
        };
        for other in others {
            client(*other).begin();
        }
        let mut client = client(("authorization", "Bearer a")).with("connection", "close");
        client.begin();
        client.response(&Call::new(Kind::Keyless, "balance", "said"))
    };
    let alone = said(&[]);
    assert!(alone.contains("receipt of said") && alone.contains("of whom?"), "{alone}");
    for other in [("authorization", "Bearer b"), ("cookie", "of-another"), ("x-none", "at-all")] {
        let response = said(&[other]);
        assert!(response.contains("receipt of said"), "{response}");
        assert!(!response.contains("of whom?"), "{other:?}: {response}");
    }
}
