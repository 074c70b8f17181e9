//! What a request over HTTP asks for, and how it is answered.
use super::guard::{Cancel, Guard, request};
use crate::front::{
    access::{Access, Refusal, check_json},
    body::{Answered, read, respond},
    events::stream,
    listener,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use hyper::{
    Method, Request, StatusCode, body::Incoming, header::HeaderName, http::request::Parts,
};
use serde_json::json;
use std::{pin::pin, sync::Arc};
use tr_core::{call::CallContext, one_line};

/// Whose call it is.
const SESSION: HeaderName = HeaderName::from_static("x-tool-guard-session");
const ACTOR: HeaderName = HeaderName::from_static("x-tool-guard-actor");

/// Those of ours that may occur once.
pub(super) static ONCE: [HeaderName; 2] = [SESSION, ACTOR];

/// What all connections share.
pub(super) struct Door {
    pub(super) guard: Guard,
    pub(super) access: Access,
    pub(super) max_body: usize,
}

impl listener::Door for Arc<Door> {
    fn access(&self) -> Option<&Access> {
        Some(&self.access)
    }

    async fn answer(&self, req: Request<Incoming>) -> Answered {
        let (head, body) = req.into_parts();
        let answer = answer(self, &head, body).await;
        answer.unwrap_or_else(|(status, why)| refused(status, why))
    }
}

async fn answer(door: &Door, head: &Parts, body: Incoming) -> Result<Answered, Refusal> {
    door.access.admit(head, "serve_refused")?;
    let path = head.uri.path();
    match (path, &head.method) {
        ("/tools", &Method::GET) => {
            Ok(respond(StatusCode::OK, door.guard.declared().to_string().into()))
        }
        ("/call" | "/cancel", &Method::POST) => {
            check_json(head)?;
            let context = context(head)?;
            let body = read(body, door.max_body).await?;
            if path == "/call" {
                Ok(call(&door.guard, body, context).await)
            } else {
                Ok(cancel(&door.guard, &body, context))
            }
        }
        ("/tools" | "/call" | "/cancel", _) => {
            Err((StatusCode::METHOD_NOT_ALLOWED, "use GET /tools, POST /call or POST /cancel"))
        }
        _ => Err((StatusCode::NOT_FOUND, "there are /tools, /call and /cancel")),
    }
}

/// On whose behalf the caller says that it calls.
fn context(head: &Parts) -> Result<CallContext, Refusal> {
    let said = |name: &HeaderName| {
        let Some(value) = head.headers.get(name) else { return Ok(None) };
        // Without its name a caller would share the records of all who give none.
        let value = value.to_str().ok().filter(|value| !value.is_empty());
        let why = "x-tool-guard-session and x-tool-guard-actor need visible ASCII characters";
        value.map(|value| Some(value.into())).ok_or((StatusCode::BAD_REQUEST, why))
    };
    let mut context = CallContext::default();
    context.session = said(&SESSION)?;
    context.actor = said(&ACTOR)?;
    Ok(context)
}

async fn call(guard: &Guard, body: Bytes, context: CallContext) -> Answered {
    let answers = guard.tools.answers(request(body, context));
    if answers.is_streaming() {
        let events = answers.map(|answer| {
            Ok(Bytes::from(format!("data: {}\n\n", one_line(answer.to_json().get()))))
        });
        return stream(events);
    }
    let answer = pin!(answers).next().await.expect("each request has an answer");
    let status = if answer.is_refused() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    respond(status, answer.to_bytes())
}

fn cancel(guard: &Guard, body: &[u8], context: CallContext) -> Answered {
    match serde_json::from_slice::<Cancel>(body) {
        Ok(order) => respond(StatusCode::OK, guard.cancel(order, context).to_string().into()),
        Err(error) => {
            let why = format!("expected {{\"cancel\": \"the cancellationId of calls\"}}: {error}");
            refused(StatusCode::BAD_REQUEST, &why)
        }
    }
}

/// The answer to what is no call: nothing ran.
fn refused(status: StatusCode, why: &str) -> Answered {
    respond(status, json!({ "error": why, "ran": "no" }).to_string().into())
}
