//! Calls as streams, and what they give.
use futures_util::StreamExt;
use std::pin::pin;
use tool_reliability::{Streaming, streaming::CallStream};
use tower::{Service, util::BoxCloneSyncService};
use tr_core::{BoxError, Effect, Json, Params, ToolCall, ToolOutcome};

/// A chunk: its index, whether it is the last, its content, and the code of its error.
pub(crate) type Item = (u64, bool, Option<Json>, Option<String>);

pub(crate) fn call(tool: &str) -> ToolCall {
    ToolCall::new(tool, Params::empty_object()).effect(Effect::ReadOnly).session("s").turn("t")
}

pub(crate) fn text(text: &str) -> Json {
    Json::from_value(text).unwrap()
}

pub(crate) fn item(index: u64, content: Json) -> Item {
    (index, false, Some(content), None)
}

pub(crate) fn last(index: u64, content: Option<Json>) -> Item {
    (index, true, content, None)
}

pub(crate) fn failed(index: u64, code: &str) -> Item {
    (index, true, None, Some(code.into()))
}

pub(crate) fn seen(outcome: &ToolOutcome) -> Item {
    let chunk = outcome.parts().chunk.expect("every outcome of a stream is marked");
    let code = outcome.error().map(|error| String::from(error.code.clone()));
    (chunk.index, chunk.last, outcome.content().cloned(), code)
}

/// A tool in a box, so that the stack is compiled once for all of them.
pub(crate) fn boxed<S>(tool: S) -> BoxCloneSyncService<ToolCall, ToolOutcome, S::Error>
where
    S: Service<ToolCall, Response = ToolOutcome, Future: Send> + Clone + Send + Sync + 'static,
{
    BoxCloneSyncService::new(tool)
}

/// All outcomes of a call.
pub(crate) async fn outcomes<S>(tool: &Streaming<S>, call: ToolCall) -> Vec<ToolOutcome>
where
    S: Service<ToolCall, Response = ToolOutcome> + Clone,
    S::Error: Into<BoxError>,
{
    let stream: CallStream<S, S::Future> = tool.stream(call);
    pin!(stream).collect().await
}

pub(crate) async fn all<S>(tool: &Streaming<S>, call: ToolCall) -> Vec<Item>
where
    S: Service<ToolCall, Response = ToolOutcome> + Clone,
    S::Error: Into<BoxError>,
{
    outcomes(tool, call).await.iter().map(seen).collect()
}
