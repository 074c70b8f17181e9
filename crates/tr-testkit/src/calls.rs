//! Tool calls, their responses and the contract laws of `Service` ([`laws`](crate::laws)), in
//! tr-core's types.
//!
//! # When to use
//!
//! For a layer around a service of [`ToolCall`]s. A tool fails in two ways, and a layer has to
//! handle both: its future returns an error ([`fails`]), or its response reports a failure
//! ([`reports`]).
//!
//! # Example
//!
//! ```
//! use tower::{Service, ServiceExt};
//! use tr_core::{DefaultPolicy, Effect, Ran, ResponsePolicy, Verdict};
//! use tr_testkit::calls::{self, ScriptedTool};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! let script = [
//!     calls::fails("connection_reset", Verdict::TRANSIENT, Ran::Unknown),
//!     calls::reports("not_found", "no such flight"),
//!     calls::answers("LIS"),
//! ];
//! let mut tool = ScriptedTool::script(script);
//! let search = calls::call("flight_search", Effect::ReadOnly);
//!
//! let error = tool.ready().await.unwrap().call(search.clone()).await.unwrap_err();
//! assert_eq!(tr_core::failure_info(&error).unwrap().ran(), Ran::Unknown);
//!
//! let reported = tool.ready().await.unwrap().call(search.clone()).await.unwrap();
//! assert_eq!(&*reported.error().unwrap().message, "no such flight");
//!
//! let found = tool.ready().await.unwrap().call(search).await.unwrap();
//! assert_eq!(found.content().unwrap().get(), r#""LIS""#);
//! assert!(DefaultPolicy.classify(Ok(&found)).verdict.is_success());
//! # }
//! ```

use crate::{
    laws::Laws,
    tool::{Scripted, Step},
};
use tr_core::{Effect, FailureInfo, Json, Params, Ran, ToolCall, ToolError, ToolOutcome, Verdict};

/// A scripted tool of tr-core's types.
pub type ScriptedTool = Scripted<ToolCall, ToolOutcome>;

/// A call of `tool` without params, session or idempotency key.
pub fn call(tool: &str, effect: Effect) -> ToolCall {
    ToolCall::new(tool, Params::empty_object()).effect(effect)
}

/// Responds with this text as content.
pub fn answers(text: &str) -> Step<ToolOutcome> {
    Step::Ok(ToolOutcome::success(serde_json::Value::from(text)))
}

/// Fails with an error that has this failure info.
pub fn fails(code: &'static str, verdict: Verdict, ran: Ran) -> Step<ToolOutcome> {
    Step::err(FailureInfo::new(code, ran, verdict))
}

/// Responds with a failure, which the layers classify.
pub fn reports(code: &str, message: &str) -> Step<ToolOutcome> {
    Step::Ok(ToolOutcome::failure(ToolError::new(code, message)))
}

/// The contract laws for layers of tool calls: each call is read-only and has unique params and a unique
/// key.
///
/// ```
/// use std::time::Duration;
/// use tower::timeout::Timeout;
/// tr_testkit::calls::laws().check(|inner| Timeout::new(inner, Duration::from_secs(1)));
/// ```
pub fn laws() -> Laws<ToolCall, ToolOutcome> {
    let request = |n: u64| {
        let params: Json = serde_json::json!({ "n": n }).into();
        ToolCall::new("read", params)
            .effect(Effect::ReadOnly)
            .session("s")
            .idempotency_key(format!("call-{n}"))
    };
    let response = |call: &ToolCall| ToolOutcome::success(call.parts().params.clone());
    Laws::compared_by(request, response, |a, b| a.content() == b.content())
}
