//! Payments of unknown outcome that another tool of the server tells of, after every fault, for every client.
use crate::{
    client::{Call, Era, Http, Kind},
    guard::{Shop, Way},
    upstream::{Auth, Fault, Lost, Tail, Upstream},
    wire::until,
};
use std::fs;

const CHECK: &str = r#"[tools.pay]
effect = "mutating"
[tools.pay.check]
tool = "payments"
args = { order = "/order" }
found = "/payments"
match = { order = "/order" }
not_before = "/at"
"#;

const FAULTS: [(Fault, Era); 10] = [
    (Fault::NoHeaders, Era::Legacy),
    (Fault::SlowBody, Era::Legacy),
    (Fault::Dropped, Era::Legacy),
    (Fault::Dropped, Era::Modern),
    (Fault::SseCut(Tail::NoEventId), Era::Legacy),
    (Fault::SseCut(Tail::NoEventId), Era::Modern),
    (Fault::LostSession(Lost::NotFound), Era::Legacy),
    (Fault::Auth(Auth { status: 403, is_challenge: false }), Era::Legacy),
    (Fault::Status(503), Era::Legacy),
    (Fault::Html, Era::Legacy),
];

fn shop(upstream: &Upstream, check: &str) -> Shop {
    let shop = Shop::over(upstream).with(["--timeout", "1s"]);
    let catalog = shop.path("catalog.toml");
    fs::write(&catalog, check).unwrap();
    shop.with(["--catalog".into(), catalog])
}

fn settles(way: Way) {
    for (fault, era) in FAULTS {
        let upstream = Upstream::start();
        let shop = shop(&upstream, CHECK);
        for kind in Kind::ALL {
            let mut client = shop.open(way, kind, era);
            let call = Call::new(kind, "pay", &format!("{kind:?}"));
            upstream.play(fault);
            let seen = client.call(&call);
            let last = seen.last().unwrap();
            // The session in which it would be asked is lost.
            let asks = !matches!(fault, Fault::LostSession(_)) || way == Way::StdioHttp;
            assert_eq!(
                last.is_success() && last.text().contains("[SETTLED]"),
                asks,
                "{fault:?} {kind:?}: {seen:?}"
            );
            assert_eq!(upstream.executed(&call.order), 1, "{fault:?} {kind:?}: {seen:?}");
        }
    }
}

#[test]
fn each_fault_is_settled_over_http() {
    settles(Way::HttpHttp);
}

#[test]
fn each_fault_is_settled_from_stdio() {
    settles(Way::StdioHttp);
}

/// What the check finds out is for the caller whose call it was.
#[test]
fn an_equal_call_of_another_client_learns_nothing_and_does_not_take_the_answer() {
    let upstream = Upstream::start();
    let shop = shop(&upstream, CHECK);
    let guard = shop.listen(Way::HttpHttp);
    let (mut payer, mut other) = (
        Http::open(&guard.url, Kind::Keyless, Era::Legacy),
        Http::open(&guard.url, Kind::Keyless, Era::Legacy),
    );
    let call = Call::new(Kind::Keyless, "pay", "42");
    upstream.play(Fault::Status(503));
    upstream.hide_payments(true);
    let first = payer.once(&call);
    assert!(first.text().contains("may have run"), "{first:?}");
    upstream.hide_payments(false);
    let theirs = other.once(&call);
    assert!(!theirs.text().contains("[SETTLED]") && !theirs.is_success(), "{theirs:?}");
    let again = payer.once(&call);
    assert!(again.text().contains("[SETTLED]"), "{again:?}");
    assert_eq!(upstream.executed("42"), 1);
}

/// The credential of a client that has left is not used.
#[test]
fn nothing_is_asked_for_a_client_that_left_and_its_repeat_is_answered() {
    let upstream = Upstream::start();
    let shop = shop(&upstream, CHECK);
    let guard = shop.listen(Way::HttpHttp);
    let mut client = Http::open(&guard.url, Kind::Keyed, Era::Legacy);
    let call = Call::new(Kind::Keyed, "pay", "42");
    upstream.play(Fault::NoHeaders);
    let begun = client.begin_call(&call);
    until("it runs", || (upstream.executed("42") == 1).then_some(()));
    drop(begun);
    let asked = || {
        upstream
            .seen("tools/call")
            .iter()
            .filter(|it| it.body["params"]["name"] == "payments")
            .count()
    };
    let told = until("its end", || {
        let seen = client.once(&call);
        (!seen.text().contains("still runs")).then_some(seen)
    });
    assert!(told.text().contains("[SETTLED]"), "{told:?}");
    assert_eq!((upstream.executed("42"), asked()), (1, 1));
}
