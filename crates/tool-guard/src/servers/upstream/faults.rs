//! What a fault on the way to the server says about a request: whether the tool ran, whether a repeat may help,
//! and what the client gets.
use crate::{
    engine::{failure::Failure, options::StatusRules},
    wire::jsonrpc::{METHOD_NOT_FOUND, MISMATCH, error_code},
};
use hyper::{HeaderMap, StatusCode, header::WWW_AUTHENTICATE};
use tool_reliability::config::StatusMeaning;
use tr_core::{FailureInfo, Ran, SystemClock, Verdict, classify, code};

/// What happened in place of an answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// No connection was made, so nothing was sent.
    NotConnected(String),
    /// No connection was made, since the server could not show who it is.
    Tls(String),
    /// The connection ended after the request was sent, or may have been.
    Dropped(String),
    /// The event stream ended before the answer, and was not resumed.
    Cut,
    /// A response of status 2xx answers something else.
    NoAnswer(String),
    /// The server is at another address.
    Redirected(StatusCode, String),
    /// The server asks for a login that cannot be done through the guard.
    Login,
    /// The server speaks the transport before Streamable HTTP.
    Older,
}

/// What the request is.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'f> {
    pub(super) kind: Kind,
    /// Whether it names a session.
    pub(super) has_session: bool,
    /// Whether it is of MCP 2026-07-28 or later.
    pub(super) is_modern: bool,
    /// Where the server is.
    pub(super) host: &'f str,
}

/// The kinds of requests that differ in what a fault means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No call of a tool.
    Message,
    /// A call that changes nothing, or may be repeated.
    Read,
    /// Any other call.
    Mutating,
    /// The request before a mutating call: the call was not sent.
    Preflight,
}

/// What follows from a fault on the way to the server at `host`, of a request of this kind.
pub(super) fn failure(fault: &Fault, kind: Kind, host: &str) -> Failure {
    let (code, ran, verdict) = match fault {
        Fault::NotConnected(_) => ("connection_refused", Ran::No, Verdict::TRANSIENT),
        Fault::Tls(_) => ("tls_untrusted", Ran::No, Verdict::Permanent),
        Fault::Dropped(_) | Fault::Cut => ("connection_reset", Ran::Unknown, Verdict::TRANSIENT),
        Fault::NoAnswer(_) => ("invalid_answer", Ran::Unknown, Verdict::Permanent),
        // A server may have done what it was asked for before it said so.
        Fault::Redirected(..) if matches!(kind, Kind::Read | Kind::Mutating) => {
            ("redirected", Ran::Unknown, Verdict::Permanent)
        }
        Fault::Redirected(..) => ("redirected", Ran::No, Verdict::Permanent),
        Fault::Login => ("auth_failed", Ran::No, Verdict::Permanent),
        Fault::Older => ("protocol_mismatch", Ran::No, Verdict::Permanent),
    };
    let text = match fault {
        Fault::NotConnected(why) => format!(
            "Cannot connect to the MCP server at {host}: {why}. Check that it runs, and that --upstream is its address"
        ),
        Fault::Tls(why) => format!(
            "The TLS connection to the MCP server at {host} failed: {why}. Check its name and its certificate; give an authority of your own with --ca"
        ),
        Fault::Dropped(why) => {
            format!("The connection to the MCP server at {host} ended before it answered: {why}")
        }
        Fault::Cut => {
            format!("The MCP server at {host} ended the stream of events before its answer")
        }
        Fault::NoAnswer(what) => {
            format!("The MCP server at {host} accepted the request and did not answer it: {what}")
        }
        Fault::Redirected(status, target) => format!(
            "The MCP server at {host} redirects to {target} ({status}), and the guard follows no redirect to another address. If that is the server, give that URL as --upstream"
        ),
        Fault::Login => format!(
            "The MCP server at {host} asks for a login (OAuth), which cannot be done through the guard. The user can give a token of that server, which goes with each request"
        ),
        Fault::Older => format!(
            "The server at {host} speaks HTTP with SSE, the transport of MCP 2024-11-05. Give the address of its Streamable HTTP endpoint, which often ends in /mcp"
        ),
    };
    failed(kind, text, code, ran, verdict)
}

/// What follows from a response of another status than 2xx. `None` if the client gets it unchanged: the tool did
/// not run, or only reads.
pub(super) fn refused(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    about: About<'_>,
    rules: &StatusRules,
) -> Option<Failure> {
    use Kind::{Message, Mutating, Preflight, Read};
    let About { kind, has_session, is_modern, host } = about;
    if kind == Message {
        return None;
    }
    let said = |ran, verdict| {
        let text = format!("The MCP server at {host} answered {status}");
        Some(failed(kind, text, code_of(status), ran, verdict))
    };
    let transient = Verdict::Transient { retry_after: retry_after(status, headers) };
    let may_pass = is_transient(status);
    let lost_route = status == StatusCode::NOT_FOUND && !has_session && error_code(body).is_none();
    match (rules.get(&status.as_u16()), kind) {
        (Some(StatusMeaning::NotRun), _) if may_pass => said(Ran::No, transient),
        (Some(StatusMeaning::NotRun), _) => None,
        (Some(StatusMeaning::Unknown), Mutating) => said(Ran::Unknown, Verdict::Permanent),
        _ if status == StatusCode::TOO_MANY_REQUESTS => said(Ran::No, transient),
        (_, Preflight | Read) if may_pass => said(Ran::Unknown, transient),
        (_, Preflight | Read) if lost_route => said(Ran::Unknown, Verdict::TRANSIENT),
        (_, Mutating) if is_modern && is_protocol_refusal(status, body) => None,
        (_, Mutating) if !is_challenge(status, headers) => {
            said(Ran::Unknown, if may_pass { transient } else { Verdict::Permanent })
        }
        _ => None,
    }
}

fn failed(kind: Kind, text: String, code: &'static str, ran: Ran, verdict: Verdict) -> Failure {
    // A call whose preflight fails was not sent.
    let ran = if kind == Kind::Preflight { Ran::No } else { ran };
    let text = if ran == Ran::No && kind != Kind::Message {
        format!("{text}; the tool did not run")
    } else {
        text
    };
    Failure::said(text, FailureInfo::new(code, ran, verdict))
}

/// Whether a server of MCP 2026-07-28 refuses the form of a request with one of the protocol's own errors: it
/// comes before the tool's work, or in place of the question that would have come before it.
pub(crate) fn is_protocol_refusal(status: StatusCode, body: &[u8]) -> bool {
    const UNSUPPORTED_VERSION: i64 = -32_022;
    status == StatusCode::BAD_REQUEST
        && error_code(body).is_some_and(|code| (UNSUPPORTED_VERSION..=MISMATCH).contains(&code))
}

/// Whether the server may answer the same request otherwise soon.
pub(super) fn is_transient(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

/// Whether the response asks for a credential. Servers may do so at the first call.
fn is_challenge(status: StatusCode, headers: &HeaderMap) -> bool {
    let is_bearer = |challenge: &str| {
        let scheme = challenge.trim_ascii_start().split([' ', '\t']).next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("bearer")
    };
    let values = headers.get_all(WWW_AUTHENTICATE);
    let mut values = values.iter().filter_map(|value| value.to_str().ok());
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        && values.any(|value| value.split(',').any(is_bearer))
}

fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<std::time::Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    classify::http_response(status.as_u16(), header, &SystemClock).end.retry_after()
}

const fn code_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "auth_failed",
        403 => "permission_denied",
        404 => "not_found",
        429 => code::RATE_LIMITED,
        502 => "bad_gateway",
        503 => "service_unavailable",
        504 => "gateway_timeout",
        500.. => "server_error",
        _ => "client_error",
    }
}

/// Whether a response to a preflight shows that the server serves this session: it knows neither the method
/// nor the message, and says so.
pub(super) fn is_alive(status: StatusCode, body: &[u8]) -> bool {
    status.is_success()
        || status == StatusCode::METHOD_NOT_ALLOWED
        || error_code(body) == Some(METHOD_NOT_FOUND)
}

#[cfg(test)]
mod tests;
