//! What is posted to the server, and what is heard of it.
use super::headers::Headers;
use crate::{
    engine::{
        out::{Outgoing, Sent},
        server_event::{EventStream, Posted, ServerEvent},
    },
    servers::upstream::Upstream,
    wire::{
        batch,
        jsonrpc::{self, Line, MISMATCH, Token, error_code},
        params::client_meta,
    },
};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream, stream::BoxStream};
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{HeaderName, HeaderValue},
};
use serde_json::{Value, json, value::RawValue};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::time::Instant;
use tr_core::internal::lock;

/// A message that was posted, or the server's own stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    /// The id under which it is answered.
    pub(super) id: Option<Token>,
    /// The ids of the requests of a batch that are not answered.
    pub(super) batch: Vec<Token>,
    /// The call that it begins.
    pub(super) call: Option<Sent>,
    pub(super) kind: Kind,
    /// The session in which it was posted.
    pub(super) session: Option<HeaderValue>,
}

/// Messages that wait for the end of another.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) by: Kind,
    /// They wait no longer than this.
    pub(super) until: Instant,
    pub(super) messages: Vec<Outgoing>,
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
}

impl Open {
    /// The message of this line, which may begin a call.
    pub(super) fn of(line: &Bytes, call: Option<Sent>) -> Self {
        let (asked, batch) = match jsonrpc::read(line) {
            Line::One(message) => {
                (message.token().filter(|_| message.method.is_some()), Vec::new())
            }
            _ => (None, batch::requests(line).filter_map(Token::read).collect()),
        };
        let id = call.as_ref().map(|call| call.id.clone()).or(asked);
        Self { id, batch, call, ..Self::default() }
    }

    /// What says nothing to anybody.
    pub(super) fn nothing() -> (Self, Option<ServerEvent>) {
        (Self::default(), Some(ServerEvent::Between(Bytes::new())))
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
        let is_message = matches!(self.kind, Kind::Message | Kind::Initialized);
        is_status && may_be && !is_of_batch && self.session.is_some() && is_message
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
}

/// A message for the server.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) upstream: Arc<Upstream>,
    pub(super) headers: Headers,
    pub(super) body: Bytes,
    /// The attempt of a call that it begins.
    pub(super) attempt: Option<Sent>,
    /// Whether its first byte may have left.
    pub(super) is_sent: Arc<AtomicBool>,
}

impl Message {
    /// Posts it. If the server refuses a call whose headers do not repeat an argument, the list of tools says which they
    /// must, and the call is posted once more.
    pub(super) fn post(self) -> EventStream {
        let is_sent = self.is_sent.clone();
        let headers = self.headers.of(&self.body);
        let arguments = of_arguments(&headers);
        let heard = self.events(headers).flat_map(move |event| match event {
            ServerEvent::Refused(refusal) if self.lacks_header(&refusal) => {
                self.clone().post_again(arguments.clone(), refusal).flatten_stream().boxed()
            }
            event => stream::iter([event]).boxed(),
        });
        EventStream::of(heard, is_sent)
    }

    fn events(&self, headers: HeaderMap) -> BoxStream<'static, ServerEvent> {
        let (body, attempt) = (self.body.clone(), self.attempt.clone());
        let posted = Posted { headers, body, attempt };
        self.upstream.events(None, posted, self.is_sent.clone()).boxed()
    }

    fn lacks_header(&self, refusal: &Response<Bytes>) -> bool {
        let code = error_code(refusal.body());
        let is_mismatch = refusal.status() == StatusCode::BAD_REQUEST && code == Some(MISMATCH);
        is_mismatch && self.attempt.is_some()
    }

    async fn post_again(
        self,
        arguments: Vec<(HeaderName, HeaderValue)>,
        refusal: Box<Response<Bytes>>,
    ) -> BoxStream<'static, ServerEvent> {
        // It did not run.
        self.is_sent.store(false, Ordering::Relaxed);
        let mut page = self.page(None).await;
        while let Some(result) = page {
            lock(&self.headers.effects).learn(&result);
            let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
            let Some(cursor) = result["nextCursor"].as_str() else { break };
            page = self.page(Some(cursor)).await;
        }
        let headers = self.headers.of(&self.body);
        // With the same headers, it would be refused again.
        if of_arguments(&headers) == arguments {
            return stream::iter([ServerEvent::Refused(refusal)]).boxed();
        }
        self.events(headers)
    }

    /// A page of the list of tools, which is asked for in the name of this call's client.
    async fn page(&self, cursor: Option<&str>) -> Option<Box<RawValue>> {
        let id = format!("tool-guard-list-{:016x}", fastrand::u64(..));
        let mut params = json!({ "_meta": client_meta(&self.body) });
        if let Some(cursor) = cursor {
            params["cursor"] = cursor.into();
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params });
        let body = Bytes::from(body.to_string());
        let posted = Posted { headers: self.headers.of(&body), body, attempt: None };
        let mut heard = pin!(self.upstream.events(None, posted, Arc::default()));
        loop {
            match heard.next().await? {
                ServerEvent::Message { line, answers: true, .. } => {
                    let Line::One(answer) = jsonrpc::read(&line) else { return None };
                    return answer.result.map(ToOwned::to_owned);
                }
                ServerEvent::Refused(_) | ServerEvent::Failed(_) | ServerEvent::Oversized(_) => {
                    return None;
                }
                ServerEvent::Head(..) | ServerEvent::Between(_) | ServerEvent::Message { .. } => {}
            }
        }
    }
}

/// The headers that repeat arguments.
fn of_arguments(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let params = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-param-"));
    params.map(|(name, value)| (name.clone(), value.clone())).collect()
}
