//! A tool whose error is no error.
//! Says: `OutOfStock: std::error::Error` is not satisfied
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tr_core::{ToolCall, ToolOutcome};
use tr_retry::RetryLayer;

struct OutOfStock;

fn main() {
    let tool = ServiceBuilder::new()
        .layer(RetryLayer::default())
        .service(service_fn(async |_: ToolCall| Err::<ToolOutcome, _>(OutOfStock)));
    let call = ToolCall::new("pay", tr_core::Params::empty_object());
    drop(ServiceExt::<ToolCall>::oneshot(tool, call));
}
