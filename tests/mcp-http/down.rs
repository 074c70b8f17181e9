//! A server that cannot be reached, and one that must not be trusted.
use crate::{
    client::{Call, Era, Http, Kind, Seen, Stdio},
    guard::{Shop, Way},
    upstream::{Refusal, Upstream},
    wire::{now, until},
};
use serde_json::json;
use std::{fs, thread, time::Duration};
use tr_testkit::tls::Authority;

/// The bound of the rows, and what a busy machine adds.
const BOUND: Duration = Duration::from_secs(15);

fn down(way: Way, tool: &'static str) {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    for kind in [Kind::Codex, Kind::Keyless] {
        let mut client = shop.open(way, kind, Era::Legacy);
        upstream.down();
        let since = now();
        let seen = client.once(&Call::new(kind, tool, "42"));
        assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
        assert!(seen.is_in_band_failure(), "{seen:?}");
        assert!(!seen.text().contains("may have run"), "{seen:?}");
        assert_eq!(upstream.executed("42"), 0);
        upstream.up();
    }
}

#[test]
fn refused_read_over_http() {
    down(Way::HttpHttp, "balance");
}

#[test]
fn refused_payment_over_http() {
    down(Way::HttpHttp, "pay");
}

#[test]
fn refused_read_from_stdio() {
    down(Way::StdioHttp, "balance");
}

#[test]
fn refused_payment_from_stdio() {
    down(Way::StdioHttp, "pay");
}

/// A server that is up again while the guard retries: its session has outlived it.
fn back(way: Way) {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let mut client = shop.open(way, Kind::Codex, Era::Legacy);
    upstream.down();
    let call = Call::new(Kind::Codex, "pay", "42");
    let seen = thread::scope(|scope| {
        let waiting = scope.spawn(|| client.call(&call).pop().unwrap());
        until("the guard retries", || shop.logs().contains("attempt").then_some(()));
        upstream.up();
        waiting.join().unwrap()
    });
    assert!(seen.is_success(), "{seen:?}\n{}", shop.logs());
    assert_eq!(upstream.executed("42"), 1);
}

#[test]
fn a_payment_goes_through_when_the_server_is_back_over_http() {
    back(Way::HttpHttp);
}

#[test]
fn a_payment_goes_through_when_the_server_is_back_from_stdio() {
    back(Way::StdioHttp);
}

/// Refused at first, and then without its sessions.
#[test]
fn a_server_that_restarts_is_paid_once_by_a_client_that_reconnects() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    for (way, kind) in [
        (Way::HttpHttp, Kind::ClaudeCode),
        (Way::HttpHttp, Kind::Codex),
        (Way::StdioHttp, Kind::Codex),
    ] {
        let mut client = shop.open(way, kind, Era::Legacy);
        upstream.down();
        upstream.up_without_sessions();
        let call = Call::new(kind, "pay", &format!("{way:?}-{kind:?}"));
        let seen = client.call(&call);
        let executed = upstream.executed(&call.order);
        let last = seen.last().unwrap();
        let paid = executed == 1 && last.is_success();
        let unknown = executed == 0 && last.is_in_band_failure();
        assert!(paid || unknown, "{way:?} {kind:?}: {executed} payments, {seen:?}");
    }
}

#[test]
fn tls_of_an_unknown_authority_is_refused_in_band_with_its_cause() {
    let (known, unknown) = (Authority::new(), Authority::new());
    let upstream = Upstream::start_tls(&unknown.issue(["localhost", "127.0.0.1"]));
    let shop = Shop::over(&upstream);
    fs::write(shop.path("ca.pem"), known.pem()).unwrap();
    let shop = shop.with([std::ffi::OsString::from("--ca")]);
    let ca = shop.path("ca.pem");
    let shop = shop.with([ca]);
    let guard = shop.listen(Way::HttpHttp);
    let mut client = Http::new(&guard.url, Kind::Codex, Era::Modern);
    for tool in ["balance", "pay"] {
        let since = now();
        let seen = client.once(&Call::new(Kind::Codex, tool, "42"));
        assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
        assert!(seen.is_in_band_failure(), "{seen:?}");
        let text = seen.text().to_lowercase();
        assert!(text.contains("certificate") || text.contains("issuer"), "{text}");
        assert!(!text.contains("may have run"), "{text}");
    }
    assert_eq!(upstream.executed("42"), 0);
}

#[test]
fn tls_of_a_known_authority_is_used() {
    let authority = Authority::new();
    let upstream = Upstream::start_tls(&authority.issue(["localhost", "127.0.0.1"]));
    let shop = Shop::over(&upstream);
    let ca = shop.path("ca.pem");
    fs::write(&ca, authority.pem()).unwrap();
    let shop = shop.with([std::ffi::OsString::from("--ca"), ca.into()]);
    for way in [Way::HttpHttp, Way::StdioHttp] {
        let mut client = shop.open(way, Kind::Codex, Era::Legacy);
        let seen = client.once(&Call::new(Kind::Codex, "pay", &format!("{way:?}")));
        assert!(seen.is_success(), "{way:?}: {seen:?}");
    }
}

#[test]
fn a_late_answer_settles_the_call() {
    use crate::upstream::Fault;
    for way in [Way::HttpHttp, Way::StdioHttp] {
        let upstream = Upstream::start();
        let shop = Shop::over(&upstream).with(["--timeout", "500ms"]);
        let mut client = shop.open(way, Kind::Codex, Era::Legacy);
        upstream.play(Fault::NoHeaders);
        let call = Call::new(Kind::Codex, "pay", "42");
        let seen = client.once(&call);
        assert!(
            seen.is_in_band_failure() && seen.text().contains("may have run"),
            "{way:?} {seen:?}"
        );
        upstream.release();
        let seen = until("the late answer settles it", || {
            let seen: Seen = client.once(&call);
            seen.is_success().then_some(seen)
        });
        assert!(seen.text().contains("receipt of"), "{way:?} {seen:?}");
        assert_eq!(upstream.executed("42"), 1, "{way:?} {:?} {}", upstream.story(), shop.logs());
    }
}

/// The model asks again under other ids, or without any, and is refused until the answer is there.
#[test]
fn a_late_answer_is_given_to_the_next_equal_call_once() {
    use crate::upstream::Fault;
    for way in [Way::HttpHttp, Way::StdioHttp] {
        for kind in [Kind::Codex, Kind::Keyless] {
            let upstream = Upstream::start();
            let shop = Shop::over(&upstream).with(["--timeout", "500ms"]);
            let mut client = shop.open(way, kind, Era::Legacy);
            let call = || Call::new(kind, "pay", "42");
            upstream.play(Fault::NoHeaders);
            assert!(client.once(&call()).text().contains("may have run"));
            upstream.release();
            // It is refused until the answer is there, and the other one until that is recorded.
            let mut asks_again = || {
                until("an equal call is not refused any more", || {
                    let seen: Seen = client.once(&call());
                    seen.is_success().then_some(seen)
                })
            };
            let told = asks_again();
            let said = told.text();
            assert!(said.contains("receipt of") && said.contains("[LATE ANSWER]"), "{told:?}");
            assert_eq!(upstream.executed("42"), 1, "{way:?} {kind:?} {}", shop.logs());
            let meant = asks_again();
            assert!(!meant.text().contains("LATE"), "{meant:?}");
            assert_eq!(upstream.executed("42"), 2, "{way:?} {kind:?}");
        }
    }
}

/// Four calls at once find that the session is lost: all are made in the one that is begun next.
#[test]
fn calls_of_a_lost_session_are_made_in_the_next_from_stdio() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let mut client = Stdio::open(shop.stdio(), Era::Legacy);
    upstream.lose_sessions();
    let call = |order: &str| Call::new(Kind::Keyless, "balance", order);
    let orders = ["1", "2", "3", "4"];
    for order in orders {
        client.begin_call(&call(order));
    }
    for order in orders {
        until("it is made", || (upstream.executed(order) == 1).then_some(()));
    }
    assert_eq!(upstream.seen("initialize").len(), 2);
}

/// A server that begins no session once is asked again: with the next message, in time also if it said nothing.
#[test]
fn a_session_that_is_not_begun_at_once_is_begun_later_from_stdio() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    for how in [Refusal::Unavailable, Refusal::Error, Refusal::Silence] {
        let mut command = shop.stdio();
        command.args(["--timeout", "4s"]);
        let mut client = Stdio::open(command, Era::Legacy);
        upstream.lose_sessions();
        upstream.refuse_session(how);
        let begun = upstream.seen("initialize").len();
        let read = client.once(&Call::new(Kind::Keyless, "balance", "1"));
        let order = format!("{how:?}");
        let seen = client.once(&Call::new(Kind::Keyless, "pay", &order));
        assert!(seen.is_success(), "{how:?}: {read:?}, then {seen:?}");
        assert_eq!(upstream.executed(&order), 1, "{how:?}");
        assert_eq!(upstream.seen("initialize").len(), begun + 2, "{how:?}: {read:?}");
    }
    upstream.release();
}

/// What follows waits until the server has `notifications/initialized`, or for two seconds.
#[test]
fn nothing_overtakes_the_begin_of_a_session_from_stdio() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    upstream.hold_initialized();
    let mut client = Stdio::spawn(shop.stdio(), Era::Legacy);
    let hello = client.begin();
    assert!(hello.is_success(), "{hello:?}");
    let since = now();
    assert!(client.request("tools/list", json!({})).is_success());
    assert!(since.elapsed() > Duration::from_millis(1500), "{:?}", since.elapsed());
    upstream.release();
    let story = upstream.story();
    let place = |what: &str| story.iter().position(|it| it == what);
    assert!(place("notifications/initialized") < place("tools/list"), "{story:?}");
}

/// What the client sends last reaches the server, and the session is ended.
#[test]
fn the_last_message_is_sent_from_stdio() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let mut client = Stdio::open(shop.stdio(), Era::Legacy);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/last" }));
    client.close();
    until("the session is ended", || (!upstream.seen("DELETE").is_empty()).then_some(()));
    assert_eq!(upstream.seen("notifications/last").len(), 1);
}
