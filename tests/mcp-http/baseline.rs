//! The clients directly at the server: what happens without a guard.
use crate::{
    client::{Call, Era, Http, Kind, Seen},
    upstream::{Auth, Fault, Lost, Tail, Upstream},
};

/// One intended payment with a fault: how often it is made, and what the client sees last.
fn pay(kind: Kind, era: Era, fault: Fault) -> (usize, Seen) {
    let upstream = Upstream::start();
    let mut client = Http::open(&upstream.url(), kind, era);
    upstream.play(fault);
    let seen = client.call(&Call::new(kind, "pay", "42")).pop().unwrap();
    (upstream.executed("42"), seen)
}

#[test]
fn a_payment_without_a_fault_is_made_once() {
    for kind in Kind::ALL {
        for era in [Era::Legacy, Era::Modern] {
            for fault in [Fault::None, Fault::NoneAsEvents] {
                let (executed, seen) = pay(kind, era, fault);
                assert_eq!(executed, 1, "{kind:?} {era:?}");
                assert!(seen.is_success() && seen.text().contains("receipt"), "{seen:?}");
            }
        }
    }
}

#[test]
fn a_session_that_is_said_to_be_lost_after_the_payment_makes_clients_pay_twice() {
    for kind in Kind::ALL {
        let (executed, seen) = pay(kind, Era::Legacy, Fault::LostSession(Lost::NotFound));
        assert_eq!(executed, 2, "{kind:?}");
        assert!(seen.is_success(), "{seen:?}");
    }
    let bad_request = Fault::LostSession(Lost::BadRequest);
    assert_eq!(pay(Kind::ClaudeCode, Era::Legacy, bad_request).0, 2);
    let (executed, seen) = pay(Kind::Codex, Era::Legacy, bad_request);
    assert!(executed == 1 && seen.is_status(400), "{seen:?}");
}

#[test]
fn a_stream_that_is_cut_makes_modern_clients_pay_twice() {
    for kind in Kind::ALL {
        for fault in [Fault::Dropped, Fault::SseCut(Tail::NoEventId)] {
            assert_eq!(pay(kind, Era::Modern, fault).0, 2, "{kind:?} {fault:?}");
            let (executed, seen) = pay(kind, Era::Legacy, fault);
            assert!(executed == 1 && matches!(seen, Seen::Cut), "{kind:?} {fault:?}: {seen:?}");
        }
    }
}

#[test]
fn every_other_fault_is_played_after_one_execution_or_none() {
    let auth = |status, is_challenge| Fault::Auth(Auth { status, is_challenge });
    for (fault, executed, what) in [
        (auth(401, false), 1, "status: 401"),
        (auth(403, false), 1, "status: 403"),
        (auth(403, true), 0, "Bearer error"),
        (Fault::TooMany, 0, "status: 429"),
        (Fault::Status(503), 1, "status: 503"),
        (Fault::Status(500), 1, "status: 500"),
        (Fault::MalformedReadableId, 1, "NaN"),
        (Fault::WrongId, 1, "never asked"),
        (Fault::Oversized(2000), 1, "xxxx"),
        (Fault::Html, 1, "log in"),
        (Fault::Redirect, 1, "status: 307"),
        (Fault::Accepted, 1, "status: 202"),
    ] {
        let (count, seen) = pay(Kind::Keyed, Era::Legacy, fault);
        assert_eq!(count, executed, "{fault:?}");
        assert!(seen.text().contains(what), "{fault:?}: {seen:?}");
    }
    // The client repeats it, and finds its session.
    let (executed, seen) = pay(Kind::Keyless, Era::Legacy, Fault::Gateway404);
    assert!(executed == 1 && seen.is_success(), "{seen:?}");
}

#[test]
fn a_server_that_is_down_refuses_and_forgets_its_sessions_when_it_is_up() {
    let upstream = Upstream::start();
    let mut client = Http::open(&upstream.url(), Kind::Codex, Era::Legacy);
    upstream.down();
    let pay = Call::new(Kind::Codex, "pay", "42");
    assert!(matches!(client.once(&pay), Seen::Cut));
    upstream.up_without_sessions();
    let seen = client.call(&pay);
    assert!(seen.len() == 2 && seen[0].is_status(404) && seen[1].is_success(), "{seen:?}");
    assert_eq!(upstream.executed("42"), 1);
}
