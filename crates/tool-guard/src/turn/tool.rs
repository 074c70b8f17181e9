//! The server's tools as a service: a call is a request.
use super::client::{Link, Pending};
use crate::mcp::{answer, failure::Failure, guessed};
use serde_json::json;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::{BoxError, ToolCall, ToolManifest, ToolOutcome};

/// Calls the tools of a server.
#[derive(Clone, Debug)]
pub(crate) struct RemoteTool(pub(crate) Arc<Link>);

impl Service<ToolCall> for RemoteTool {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = RemoteCall;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> RemoteCall {
        let parts = call.parts();
        let knows_keys = call.manifest().is_some_and(|tool| tool.capabilities.idempotency);
        let key = parts.idempotency.key.as_deref().filter(|_| knows_keys);
        let meta = key.map_or_else(String::new, |key| {
            format!(r#","_meta":{}"#, json!({ "idempotencyKey": key }))
        });
        let params = format!(
            r#"{{"name":{},"arguments":{}{meta}}}"#,
            serde_json::Value::from(parts.tool.name()),
            parts.params.get()
        );
        let codes = call.parts().manifest.clone().filter(|tool| !tool.not_run.is_empty());
        RemoteCall { pending: self.0.request("tools/call", &params), codes }
    }
}

/// A call in flight.
#[derive(Debug)]
pub(crate) struct RemoteCall {
    /// `None` if the server had ended before.
    pending: Option<Pending>,
    /// The manifest with the codes by which the tool says that it did not run.
    codes: Option<Arc<ToolManifest>>,
}

impl Future for RemoteCall {
    type Output = Result<ToolOutcome, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(pending) = &mut self.pending else {
            return Poll::Ready(Err(Failure::SERVER_GONE_BEFORE.into()));
        };
        let Ok(line) = ready!(Pin::new(&mut pending.answer).poll(cx)) else {
            return Poll::Ready(Err(Failure::GONE_OR_TOO_LONG.into()));
        };
        Poll::Ready(Ok(answer::judged(guessed::of_line(&line), self.codes.as_deref())))
    }
}
