//! Each test names its row of the table in docs/mcp-http.md.
use super::*;
use Kind::{Message, Mutating, Preflight, Read};
use hyper::header::HeaderValue;
use std::time::Duration;
use tr_core::classify;

/// What the client gets, and what the stack hears.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Pass,
    Failed(Ran, Verdict),
}

const NOT_RUN_RETRIED: Seen = Seen::Failed(Ran::No, Verdict::TRANSIENT);
const UNKNOWN_RETRIED: Seen = Seen::Failed(Ran::Unknown, Verdict::TRANSIENT);
const UNKNOWN: Seen = Seen::Failed(Ran::Unknown, Verdict::Permanent);

const HOST: &str = "mcp.example.com";

fn about(kind: Kind, has_session: bool) -> About<'static> {
    About { kind, has_session, is_modern: !has_session, host: HOST }
}

fn seen(failure: &Failure, kind: Kind) -> Seen {
    let text = failure.to_string();
    let end = classify::error(failure).end;
    assert!(text.contains(HOST) && !text.ends_with('.'), "{text}");
    let said = text.contains("did not run");
    assert_eq!(said, end.ran == Ran::No && kind != Message, "{text}");
    Seen::Failed(end.ran, end.verdict)
}

fn fault(fault: &Fault, kind: Kind) -> Seen {
    seen(&failure(fault, kind, HOST), kind)
}

/// A response with this header and body, in a session or without.
fn status(
    status: u16,
    header: Option<(&'static str, &'static str)>,
    body: &str,
    kind: Kind,
    has_session: bool,
) -> Seen {
    by_rules(status, header, body, kind, has_session, &StatusRules::default())
}

fn by_rules(
    status: u16,
    header: Option<(&'static str, &'static str)>,
    body: &str,
    kind: Kind,
    has_session: bool,
    rules: &StatusRules,
) -> Seen {
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = header {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let status = StatusCode::from_u16(status).unwrap();
    let failure = refused(status, &headers, body.as_bytes(), about(kind, has_session), rules);
    failure.map_or(Seen::Pass, |failure| seen(&failure, kind))
}

const RPC: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}"#;

#[test]
fn refused_or_dns() {
    for kind in [Read, Mutating, Preflight, Message] {
        assert_eq!(fault(&Fault::NotConnected("Connection refused".into()), kind), NOT_RUN_RETRIED);
    }
}

#[test]
fn tls() {
    let tls = Fault::Tls("invalid peer certificate: UnknownIssuer".into());
    for kind in [Read, Mutating, Preflight] {
        assert_eq!(fault(&tls, kind), Seen::Failed(Ran::No, Verdict::Permanent));
    }
    assert!(failure(&tls, Read, HOST).to_string().contains("UnknownIssuer"));
}

#[test]
fn dropped_after_sending() {
    for gone in [Fault::Dropped("reset".into()), Fault::Cut] {
        assert_eq!(fault(&gone, Read), UNKNOWN_RETRIED);
        assert_eq!(fault(&gone, Mutating), UNKNOWN_RETRIED);
        assert_eq!(fault(&gone, Preflight), NOT_RUN_RETRIED);
    }
}

#[test]
fn session_lost() {
    for (code, body) in [(404, RPC), (400, RPC), (404, "gone"), (400, "")] {
        assert_eq!(status(code, None, body, Read, true), Seen::Pass, "{code}");
        assert_eq!(status(code, None, body, Mutating, true), UNKNOWN, "{code}");
        assert_eq!(status(code, None, body, Preflight, true), Seen::Pass, "{code}");
    }
}

#[test]
fn a_bearer_challenge() {
    for value in
        ["Bearer realm=\"x\"", "bearer", "Basic realm=\"x\", Bearer resource_metadata=\"u\""]
    {
        for code in [401, 403] {
            for kind in [Read, Mutating, Preflight] {
                let said = status(code, Some(("www-authenticate", value)), "", kind, true);
                assert_eq!(said, Seen::Pass, "{code} {value}");
            }
        }
    }
    // A challenge belongs to these two statuses.
    assert_eq!(status(400, Some(("www-authenticate", "Bearer")), "", Mutating, true), UNKNOWN);
}

#[test]
fn unauthorized_without_a_challenge() {
    for header in [
        None,
        Some(("www-authenticate", "Basic realm=\"Bearer\"")),
        Some(("www-authenticate", "Bearers x")),
    ] {
        for code in [401, 403] {
            assert_eq!(status(code, header, "", Read, true), Seen::Pass);
            assert_eq!(status(code, header, "", Mutating, true), UNKNOWN);
            assert_eq!(status(code, header, "", Preflight, true), Seen::Pass);
        }
    }
}

#[test]
fn too_many_requests() {
    let after = Some(("retry-after", "7"));
    let later = Verdict::Transient { retry_after: Some(Duration::from_secs(7)) };
    for kind in [Read, Mutating, Preflight] {
        assert_eq!(status(429, after, "", kind, true), Seen::Failed(Ran::No, later));
        assert_eq!(status(429, None, "", kind, true), NOT_RUN_RETRIED);
    }
}

#[test]
fn server_errors() {
    for code in [500, 502, 503, 504, 599] {
        assert_eq!(status(code, None, "", Read, true), UNKNOWN_RETRIED, "{code}");
        assert_eq!(status(code, None, "", Mutating, true), UNKNOWN_RETRIED, "{code}");
        assert_eq!(status(code, None, "", Preflight, true), NOT_RUN_RETRIED, "{code}");
    }
}

#[test]
fn a_gateway_that_lost_its_route() {
    assert_eq!(status(404, None, "<html>", Read, false), UNKNOWN_RETRIED);
    assert_eq!(status(404, None, "<html>", Mutating, false), UNKNOWN);
    assert_eq!(status(404, None, "<html>", Preflight, false), NOT_RUN_RETRIED);
    assert_eq!(status(404, None, RPC, Read, false), Seen::Pass);
}

#[test]
fn an_answer_that_is_none() {
    let none = || Fault::NoAnswer("202 Accepted, with an empty body".into());
    assert_eq!(fault(&none(), Read), UNKNOWN);
    assert_eq!(fault(&none(), Mutating), UNKNOWN);
}

#[test]
fn other_statuses() {
    for code in [302, 307, 405, 406, 413, 415, 422] {
        assert_eq!(status(code, None, "", Read, true), Seen::Pass, "{code}");
        assert_eq!(status(code, None, RPC, Mutating, true), UNKNOWN, "{code}");
    }
}

#[test]
fn messages_that_are_no_calls_pass() {
    for code in [400, 401, 404, 429, 500, 503] {
        assert_eq!(status(code, None, "", Message, false), Seen::Pass, "{code}");
    }
}

#[test]
fn operators_know_better() {
    let rules: StatusRules =
        [(503, StatusMeaning::NotRun), (404, StatusMeaning::NotRun), (429, StatusMeaning::Unknown)]
            .into_iter()
            .collect();
    let by = |code, kind| by_rules(code, None, "", kind, true, &rules);
    assert_eq!(by(503, Mutating), NOT_RUN_RETRIED);
    assert_eq!(by(503, Read), NOT_RUN_RETRIED);
    assert_eq!(by(404, Mutating), Seen::Pass);
    assert_eq!(by(429, Mutating), UNKNOWN);
    assert_eq!(by(429, Read), NOT_RUN_RETRIED);
    assert_eq!(by(500, Mutating), UNKNOWN_RETRIED);
}

#[test]
fn signs_of_life() {
    let said =
        |code: u16, body: &str| is_alive(StatusCode::from_u16(code).unwrap(), body.as_bytes());
    let unknown =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;
    assert!(
        said(200, "") && said(202, "") && said(405, "") && said(404, unknown) && said(400, unknown)
    );
    assert!(!said(404, RPC) && !said(404, "") && !said(500, "") && !said(401, ""));
}

/// The errors by which MCP 2026-07-28 refuses the form of a request.
#[test]
fn the_protocols_own_refusals() {
    for code in [-32_020, -32_021, -32_022] {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":{code},"message":"no"}}}}"#);
        assert_eq!(status(400, None, &body, Mutating, false), Seen::Pass, "{code}");
        // A server with sessions may mean anything by it, and so may another status.
        assert_eq!(status(400, None, &body, Mutating, true), UNKNOWN, "{code}");
        assert_eq!(status(404, None, &body, Mutating, false), UNKNOWN, "{code}");
    }
    for code in [-32_000, -32_019, -32_023, -32_600, -32_602] {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":{code},"message":"no"}}}}"#);
        assert_eq!(status(400, None, &body, Mutating, false), UNKNOWN, "{code}");
    }
}
