//! The responses to requests that are no guarded calls.
use crate::{
    engine::{
        answer,
        failure::Failure,
        guard::Guard,
        proxy::too_long,
        server_event::{ServerEvent, refused},
    },
    front::{
        body::{Answered, respond},
        events::{event, stream},
    },
    servers::connection::Post,
    wire::{
        batch,
        jsonrpc::{self, Line, NOT_FORWARDED},
        scan,
    },
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    Response, StatusCode,
    header::{ALLOW, HeaderValue, RETRY_AFTER},
};
use std::{io, sync::Arc, time::Duration};
use tr_core::{FailureInfo, Ran, Verdict, internal::millis};

/// What a body asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The JSON text of the first request's id.
    pub(super) id: Box<str>,
    /// The method of a message that is alone.
    pub(super) method: Option<Box<str>>,
    pub(super) requests: usize,
}

/// Marks the response to a request that has no result.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoResult {
    /// The server answered with this JSON-RPC error.
    Error(i64),
    /// The server will not answer, and this is known of the request.
    Unanswered(Ran),
}

impl Asked {
    /// # Errors
    /// If it is no message.
    pub(super) fn of(body: &Bytes) -> Result<Self, Box<Answered>> {
        match jsonrpc::read(body) {
            Line::One(message) => Ok(Self {
                id: message.id.map_or("null", |id| id.get()).into(),
                requests: usize::from(message.method.is_some() && message.id.is_some()),
                method: message.method.as_deref().map(Into::into),
            }),
            Line::Batch => {
                let mut ids = batch::requests(body);
                let id = ids.next().map(|id| id.get().into());
                let requests = usize::from(id.is_some()) + ids.count();
                Ok(Self { id: id.unwrap_or_else(|| "null".into()), method: None, requests })
            }
            Line::Unreadable { .. } => {
                const WHY: &str = "the body was not forwarded: it is not valid JSON (syntax error, invalid UTF-8 or a duplicate member name)";
                Err(Box::new(refused(StatusCode::BAD_REQUEST, "null", -32700, WHY)))
            }
        }
    }
}

/// The response to what was posted: the answer alone, or a stream if there is more, or if it `is_primed`.
pub(super) async fn answered(
    mut post: Post,
    guard: &Arc<Guard>,
    asked: &Asked,
    is_primed: bool,
) -> Answered {
    let mut first = None;
    if !is_primed {
        let Some(heard) = post.next().await else { return empty(StatusCode::ACCEPTED) };
        match heard {
            ServerEvent::Message { line, .. }
                if asked.requests == 1 && scan::answered(&line).is_some() =>
            {
                let mut answer = respond(StatusCode::OK, guard.overheard(&line));
                if let Some(error) = jsonrpc::error(&line) {
                    let code = error.code().unwrap_or_default();
                    answer.extensions_mut().insert(NoResult::Error(code));
                }
                return answer;
            }
            ServerEvent::Refused(response) => {
                let (head, body) = response.into_parts();
                return respond(head.status, body);
            }
            heard @ (ServerEvent::Failed(_) | ServerEvent::Oversized(_)) => {
                let line = failure_line(&asked.id, &heard).unwrap_or_default();
                let mut answer = respond(StatusCode::BAD_GATEWAY, line);
                if let ServerEvent::Failed(failure) = &heard {
                    answer.extensions_mut().insert(NoResult::Unanswered(failure.ran()));
                }
                return answer;
            }
            heard => first = Some(heard),
        }
    }
    let (guard, id) = (guard.clone(), asked.id.clone());
    let events = futures_util::stream::iter(first).chain(post);
    stream(events.filter_map(move |heard| {
        let line = match heard {
            ServerEvent::Message { line, .. } => Some(guard.overheard(&line)),
            heard => failure_line(&id, &heard),
        };
        std::future::ready(line.map(|line| Ok(event(&line, None))))
    }))
}

/// The answer to a request that the server does not answer.
fn failure_line(id: &str, heard: &ServerEvent) -> Option<Bytes> {
    match heard {
        ServerEvent::Failed(failure) => {
            Some(answer::refusal(id, NOT_FORWARDED, &failure.to_string()))
        }
        ServerEvent::Oversized(line) => Some(too_long(line, line.id.as_deref().or(Some(id)))),
        ServerEvent::Refused(response) => Some(response.body().clone()),
        _ => None,
    }
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Answered {
    let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// What is known of a request to a server that no process could be made for.
pub(super) fn failed(error: &io::Error) -> Failure {
    let facts = FailureInfo::new("server_not_started", Ran::No, Verdict::TRANSIENT);
    Failure::said(format!("the MCP server cannot be started: {error}"), facts)
}

/// The answer to a discovery, of a server that knows sessions only: as older servers give it.
pub(super) fn of_sessions(id: &str) -> Answered {
    const WHY: &str =
        "Bad Request: the server speaks versions of MCP with sessions only: send initialize";
    refused(StatusCode::BAD_REQUEST, id, -32000, WHY)
}

pub(super) fn not_allowed() -> Answered {
    let mut answer =
        refused(StatusCode::METHOD_NOT_ALLOWED, "null", -32000, "use POST, GET or DELETE");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
    answer
}

pub(super) fn not_started(id: &str, error: &io::Error) -> Answered {
    refused(StatusCode::BAD_GATEWAY, id, NOT_FORWARDED, &failed(error).to_string())
}

/// The answer beyond a limit that may hold for so long: nothing ran.
pub(super) fn full(id: &str, what: &str, wait: Duration) -> Answered {
    let seconds = millis(wait).div_ceil(1_000).max(1);
    let why = format!("{what}: the request was not forwarded; send it again in {seconds} s");
    let mut answer = refused(StatusCode::SERVICE_UNAVAILABLE, id, -32000, &why);
    answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    answer
}
