//! What is posted to the server, and what is heard of it.
use crate::{
    engine::{
        failure::Failure,
        out::{Outgoing, Sent},
        server_event::ServerEvent,
    },
    servers::upstream::client_meta,
    wire::{
        batch,
        jsonrpc::{self, Line, MISMATCH, Token, error_code},
    },
};
use bytes::Bytes;
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{HeaderName, HeaderValue},
};
use serde_json::{Value, json, value::RawValue};
use tokio::time::Instant;
use tr_core::{FailureInfo, Ran, Verdict};

/// A message that was posted, or the server's own stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    /// The id under which it is answered.
    pub(super) id: Option<Token>,
    /// The ids of the requests of a batch that are not answered.
    pub(super) batch: Vec<Token>,
    /// The call that it begins.
    pub(super) call: Option<Call>,
    pub(super) kind: Kind,
    /// The session in which it was posted.
    pub(super) session: Option<HeaderValue>,
}

/// A call that was posted.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) body: Bytes,
    pub(super) sent: Sent,
    /// The headers that repeat its arguments.
    pub(super) params: Vec<(HeaderName, HeaderValue)>,
    /// Whether it was posted before, with other headers.
    pub(super) is_again: bool,
}

/// Messages that wait for the end of another.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) by: Kind,
    /// They wait no longer than this.
    pub(super) until: Instant,
    pub(super) messages: Vec<Outgoing>,
}

/// A call that was refused since its headers do not repeat what they should.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) open: Open,
    pub(super) response: Box<Response<Bytes>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// The client's `initialize`.
    Begins,
    /// The same, sent once more since the session was lost.
    BeginsAgain,
    /// `notifications/initialized`.
    Initialized,
    #[default]
    Message,
    /// A request whose stream lasts.
    Subscription,
    /// The server's own stream.
    Stream,
    /// The list of tools, which the guard asks for.
    List,
}

impl Open {
    /// What says nothing to anybody.
    pub(super) fn nothing() -> (Self, Option<ServerEvent>) {
        (Self::default(), Some(ServerEvent::Between(Bytes::new())))
    }

    /// Whether it begins a call.
    pub(super) const fn is_call(&self) -> bool {
        self.call.is_some()
    }

    /// Whether this refusal says that the session is lost, in which the message was posted.
    pub(super) fn has_lost(&self, response: &Response<Bytes>) -> bool {
        let is_status =
            matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST);
        // An error of another code answers the request itself.
        let code = error_code(response.body());
        let may_be = code.is_none_or(|code| matches!(code, -32001 | -32000 | -32600));
        // A server that takes no batches says so with this.
        let is_of_batch = !self.batch.is_empty()
            && response.status() == StatusCode::BAD_REQUEST
            && code == Some(-32600);
        if is_of_batch {
            return false;
        }
        let is_message = matches!(self.kind, Kind::Message | Kind::Initialized);
        is_status && may_be && self.session.is_some() && is_message
    }

    /// Whether the client waits for an answer.
    pub(super) fn is_asked(&self) -> bool {
        !self.lasts() && (self.id.is_some() || !self.batch.is_empty())
    }

    /// Whether it ends with the client's own end.
    pub(super) const fn lasts(&self) -> bool {
        matches!(self.kind, Kind::Stream | Kind::Subscription)
    }

    /// Notes which requests are answered: what follows in the same stream is no answer of theirs.
    pub(super) fn on_heard(&mut self, heard: Option<&ServerEvent>) {
        let answered: Vec<_> = match heard {
            Some(ServerEvent::Message { line, .. }) => match jsonrpc::read(line) {
                Line::Batch => batch::answered(line).collect(),
                read => read.answered(line).into_iter().collect(),
            },
            Some(ServerEvent::Oversized(long)) if !long.asks => long.token().into_iter().collect(),
            _ => return,
        };
        self.id.take_if(|id| answered.contains(id));
        self.batch.retain(|id| !answered.contains(id));
    }

    /// Whether it goes on although it is cancelled.
    pub(super) fn outlives_stream(&self, is_modern: bool) -> bool {
        self.call.as_ref().is_some_and(|call| call.sent.outlives_stream(is_modern))
    }

    /// Whether the list of tools may say which headers this refused call lacks.
    pub(super) fn may_relist(&self, response: &Response<Bytes>) -> bool {
        let code = error_code(response.body());
        response.status() == StatusCode::BAD_REQUEST
            && code == Some(MISMATCH)
            && self.call.as_ref().is_some_and(|call| !call.is_again)
    }
}

pub(super) fn not_begun() -> Failure {
    let facts = FailureInfo::new("refused", Ran::No, Verdict::TRANSIENT);
    Failure::said(
        "The MCP server has lost the session and did not begin another; the tool did not run",
        facts,
    )
}

/// What an answer says of the list of tools, which the guard asks for when a server refuses a call whose headers lack
/// arguments.
pub(super) enum Listed {
    /// It is no answer.
    Other,
    /// There is no list.
    None,
    /// A page of it, and where the next begins.
    Page(Box<RawValue>, Option<String>),
}

/// A request for a page of the list, in the name of this call's client, and its id.
pub(super) fn list_request(call: &[u8], cursor: Option<&str>) -> (Bytes, Token) {
    let id = format!("tool-guard-list-{:016x}", fastrand::u64(..));
    let mut params = json!({ "_meta": client_meta(call) });
    if let Some(cursor) = cursor {
        params["cursor"] = cursor.into();
    }
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params });
    (body.to_string().into(), Token::Text(id.into()))
}

/// Reads an answer to such a request.
pub(super) fn listed(line: &Bytes) -> Listed {
    let Line::One(message) = jsonrpc::read(line) else { return Listed::Other };
    if message.method.is_some() || message.id.is_none() {
        return Listed::Other;
    }
    let Some(result) = message.result else { return Listed::None };
    let page: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let cursor = page["nextCursor"].as_str().map(str::to_owned);
    Listed::Page(result.to_owned(), cursor)
}

/// The headers that repeat arguments.
pub(super) fn repeated_in(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let params = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-param-"));
    params.map(|(name, value)| (name.clone(), value.clone())).collect()
}
