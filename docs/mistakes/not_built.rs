//! A builder where a layer belongs.
//! Says: `tr_retry::Builder: Layer<_>`
use tower::{BoxError, ServiceBuilder, service_fn};
use tr_core::{ToolCall, ToolOutcome};
use tr_retry::RetryLayer;

fn main() {
    let tool = ServiceBuilder::new()
        .layer(RetryLayer::builder().attempts(2))
        .service(service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default())));
    drop(tool);
}
