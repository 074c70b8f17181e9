//! Retries around a service that is not `Clone`.
//! Says: `Tool: Clone` is not satisfied
use std::task::{Context, Poll};
use tower::{BoxError, Layer, Service, ServiceExt};
use tr_core::{ToolCall, ToolOutcome};
use tr_retry::RetryLayer;

struct Tool;
impl Service<ToolCall> for Tool {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = std::future::Ready<Result<ToolOutcome, BoxError>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, _: ToolCall) -> Self::Future {
        std::future::ready(Ok(ToolOutcome::default()))
    }
}

fn main() {
    let call = ToolCall::new("pay", tr_core::Params::empty_object());
    drop(ServiceExt::<ToolCall>::oneshot(RetryLayer::default().layer(Tool), call));
}
