//! The form that MCP 2026-07-28 demands of a request: headers that repeat arguments, and refusals of another form.
use crate::{
    client::{Call, Era, Kind, Seen},
    guard::{Shop, Way},
    upstream::{Fault, Upstream},
};

fn error_code(seen: &Seen) -> i64 {
    match seen {
        Seen::Answer(answer) => answer["error"]["code"].as_i64().unwrap_or_default(),
        _ => 0,
    }
}

#[test]
fn a_header_repeats_the_argument_that_the_schema_names() {
    let upstream = Upstream::start();
    upstream.want_header();
    let shop = Shop::over(&upstream);
    let mut client = shop.open(Way::StdioHttp, Kind::Keyed, Era::Modern);
    assert!(client.once(&Call::new(Kind::Keyed, "pay", "42")).is_success());
    assert_eq!(upstream.executed("42"), 1);
    let calls = upstream.seen("tools/call");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].head.header("mcp-param-order"), Some("42"));
}

/// The schema has changed since the client read the list.
#[test]
fn a_call_that_lacks_a_header_is_sent_once_more_with_it() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let mut client = shop.open(Way::StdioHttp, Kind::Keyless, Era::Modern);
    upstream.want_header();
    let seen = client.once(&Call::new(Kind::Keyless, "pay", "42"));
    assert!(seen.is_success(), "{seen:?}");
    assert_eq!(upstream.executed("42"), 1);
    assert_eq!(upstream.seen("tools/call").len(), 2);
    assert_eq!(upstream.seen("tools/list").len(), 2);
}

#[test]
fn a_call_is_not_sent_again_with_the_same_headers() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let mut client = shop.open(Way::StdioHttp, Kind::Keyless, Era::Modern);
    upstream.play(Fault::Form(-32020));
    let call = Call::new(Kind::Keyless, "pay", "42");
    let seen = client.once(&call);
    assert_eq!(error_code(&seen), -32020, "{seen:?}");
    assert_eq!((upstream.seen("tools/call").len(), upstream.seen("tools/list").len()), (1, 2));
    // It did not run, so an equal call may.
    assert!(client.once(&call).is_success());
    assert_eq!(upstream.executed("42"), 1);
}

#[test]
fn the_protocols_own_refusals_are_the_clients_answer() {
    for code in [-32020, -32021, -32022] {
        let upstream = Upstream::start();
        let shop = Shop::over(&upstream);
        for (way, order) in [(Way::HttpHttp, "42"), (Way::StdioHttp, "43")] {
            let mut client = shop.open(way, Kind::Keyed, Era::Modern);
            let call = Call::new(Kind::Keyed, "pay", order);
            upstream.play(Fault::Form(code));
            let seen = client.once(&call);
            match &seen {
                Seen::Status { status: 400, body, .. } => {
                    assert!(way == Way::HttpHttp && body.contains(&code.to_string()), "{body}");
                }
                seen => assert_eq!(error_code(seen), code, "{way:?}: {seen:?}"),
            }
            assert_eq!(upstream.executed(order), 0, "{way:?}");
            let seen = client.once(&call);
            assert!(seen.is_success(), "{way:?} {seen:?}");
            assert_eq!(upstream.executed(order), 1, "{way:?}");
        }
    }
}

/// A server with sessions may mean anything by such a code.
#[test]
fn the_same_codes_of_an_older_server_are_not_believed() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    for (way, order) in [(Way::HttpHttp, "42"), (Way::StdioHttp, "43")] {
        let mut client = shop.open(way, Kind::Keyed, Era::Legacy);
        upstream.play(Fault::Form(-32021));
        let seen = client.once(&Call::new(Kind::Keyed, "pay", order));
        assert!(seen.is_in_band_failure() && seen.text().contains("may have run"), "{seen:?}");
    }
}
