//! The rows of the table of faults, as the bytes of their responses.
use crate::wire::{Head, message};
use serde_json::{Value, json};

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// As events of a stream, one of which is a comment.
    NoneAsEvents,
    /// The same, and the stream ends when it is released.
    LingersAsEvents,
    /// Nothing comes until it is released.
    NoHeaders,
    /// Half the body comes until it is released.
    SlowBody,
    /// The connection ends without a byte.
    Dropped,
    /// A stream of events ends before the answer.
    SseCut(Tail),
    /// The session is lost, which is said after the execution.
    LostSession(Lost),
    /// The same, and nothing is executed.
    LostSessionBefore(Lost),
    /// 401 or 403. With a challenge nothing is executed.
    Auth(Auth),
    /// 429 with `Retry-After`; nothing is executed.
    TooMany,
    /// A status without more, after the execution.
    Status(u16),
    /// A gateway that has lost its route; nothing is executed.
    Gateway404,
    /// The answer with `NaN` in it.
    MalformedReadableId,
    /// The answer under an id that was not asked.
    WrongId,
    /// An answer of so many bytes.
    Oversized(usize),
    Html,
    Redirect,
    Accepted,
    /// 400 with one of the errors of MCP 2026-07-28 for the form of a request; nothing is executed.
    Form(i64),
}

/// The response to a request in place of an MCP server's, if there is one.
pub(crate) type Instead = fn(&Head) -> Option<Vec<u8>>;

/// What the server's stream had before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The answer.
    Whole,
    NoEventId,
    /// An event with an id, after which nothing is sent again.
    EventId,
    /// An event with an id, after which the answer is sent again.
    Resumable,
}

/// How a server says that it does not know a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// As Python's does: 404.
    NotFound,
    /// As server-everything does: 400, -32000.
    BadRequest,
}

/// A refusal for want of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Auth {
    pub(crate) status: u16,
    /// With `WWW-Authenticate: Bearer`.
    pub(crate) is_challenge: bool,
}

impl Fault {
    /// Whether the tool is executed first.
    pub(crate) fn executes(self) -> bool {
        !matches!(
            self,
            Self::LostSessionBefore(_)
                | Self::TooMany
                | Self::Gateway404
                | Self::Form(_)
                | Self::Auth(Auth { is_challenge: true, .. })
        )
    }
}

/// What is sent.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) bytes: Vec<u8>,
    /// Sent when it is released.
    pub(super) held_back: Option<Vec<u8>>,
    /// Whether the connection ends then.
    pub(super) is_cut: bool,
    /// An event, and the answer that is sent again after it.
    pub(super) resumable: Option<(String, String)>,
}

pub(super) fn play(fault: Fault, answer: &Value) -> Played {
    let text = answer.to_string();
    let whole = || ok("application/json", &text);
    let bytes = match fault {
        Fault::None => whole(),
        Fault::NoneAsEvents => sse(&[(None, &text)], Tail::Whole),
        Fault::LingersAsEvents => {
            let mut bytes = sse(&[(None, &text)], Tail::Whole);
            let rest = bytes.split_off(bytes.len() - 5);
            return Played { bytes, held_back: Some(rest), ..Played::default() };
        }
        Fault::NoHeaders => return Played { held_back: Some(whole()), ..Played::default() },
        Fault::SlowBody => {
            let mut bytes = whole();
            let rest = bytes.split_off(bytes.len() - text.len() / 2);
            return Played { bytes, held_back: Some(rest), ..Played::default() };
        }
        Fault::Dropped => return Played { is_cut: true, ..Played::default() },
        Fault::SseCut(tail) => {
            let event = format!("event-{}", answer["id"].to_string().trim_matches('"'));
            let bytes = match tail {
                Tail::EventId | Tail::Resumable => sse(&[(Some(&event), "")], tail),
                _ => sse(&[], tail),
            };
            let resumable = (tail == Tail::Resumable).then_some((event, text));
            return Played { bytes, is_cut: true, resumable, held_back: None };
        }
        Fault::LostSession(how) | Fault::LostSessionBefore(how) => lost(how, &answer["id"]),
        Fault::Auth(Auth { status, is_challenge }) => {
            let challenge = ("www-authenticate", "Bearer error=\"invalid_token\"");
            let plain = ("content-type", "text/plain");
            let headers = if is_challenge { vec![plain, challenge] } else { vec![plain] };
            message(&format!("HTTP/1.1 {status} No"), &headers, b"not you")
        }
        Fault::TooMany => message("HTTP/1.1 429 Too Many Requests", &[("retry-after", "1")], b""),
        Fault::Status(status) => {
            let first = format!("HTTP/1.1 {status} Trouble");
            message(
                &first,
                &[("content-type", "text/plain")],
                b"upstream connect error or disconnect/reset before headers",
            )
        }
        Fault::Gateway404 => message(
            "HTTP/1.1 404 Not Found",
            &[("content-type", "text/html")],
            b"<h1>no such route</h1>",
        ),
        Fault::MalformedReadableId => {
            ok("application/json", &text.replacen("\"result\":{", "\"result\":{\"x\":NaN,", 1))
        }
        Fault::WrongId => {
            let mut other = answer.clone();
            other["id"] = json!("never asked");
            ok("application/json", &other.to_string())
        }
        Fault::Oversized(size) => {
            let mut other = answer.clone();
            other["result"]["content"][0]["text"] = json!("x".repeat(size));
            ok("application/json", &other.to_string())
        }
        Fault::Html => ok("text/html", "<h1>Please log in</h1>"),
        Fault::Redirect => {
            message("HTTP/1.1 307 Temporary Redirect", &[("location", "/mcp?again")], b"")
        }
        Fault::Form(code) => form(code, &answer["id"]),
        Fault::Accepted => message("HTTP/1.1 202 Accepted", &[], b""),
    };
    Played { bytes, ..Played::default() }
}

fn ok(kind: &str, body: &str) -> Vec<u8> {
    message("HTTP/1.1 200 OK", &[("content-type", kind)], body.as_bytes())
}

/// What is said of a request whose form is refused.
pub(super) fn form(code: i64, id: &Value) -> Vec<u8> {
    let error = json!({ "code": code, "message": "not in this form" });
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
    let headers = [("content-type", "application/json")];
    message("HTTP/1.1 400 Bad Request", &headers, body.as_bytes())
}

/// What is said of an unknown session.
pub(super) fn lost(how: Lost, id: &Value) -> Vec<u8> {
    let (status, code, text) = match how {
        Lost::NotFound => ("404 Not Found", -32600, "Session not found"),
        Lost::BadRequest => {
            ("400 Bad Request", -32000, "Bad Request: No valid session ID provided")
        }
    };
    let id = if how == Lost::NotFound { id } else { &Value::Null };
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } });
    message(
        &format!("HTTP/1.1 {status}"),
        &[("content-type", "application/json")],
        body.to_string().as_bytes(),
    )
}

/// A stream of these events, in chunks; whole ones end as chunks do.
pub(super) fn sse(events: &[(Option<&str>, &str)], tail: Tail) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let mut chunk =
        |text: &str| bytes.extend(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes());
    chunk(": here\n\n");
    for (id, data) in events {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        let kind = if data.is_empty() { "" } else { "event: message\n" };
        chunk(&format!("{kind}{id}data: {data}\n\n"));
    }
    if tail == Tail::Whole {
        bytes.extend(b"0\r\n\r\n");
    }
    bytes
}

/// How no session is begun.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    /// 503.
    Unavailable,
    /// A JSON-RPC error.
    Error,
    /// No answer.
    Silence,
}

impl Refusal {
    /// What answers the request with this id.
    pub(super) fn bytes(self, id: &Value) -> Option<Vec<u8>> {
        match self {
            Self::Unavailable => Some(message("HTTP/1.1 503 Service Unavailable", &[], b"")),
            Self::Error => {
                let error = json!({ "code": -32603, "message": "not now" });
                let body = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
                let headers = [("content-type", "application/json")];
                Some(message("HTTP/1.1 200 OK", &headers, body.as_bytes()))
            }
            Self::Silence => None,
        }
    }
}
