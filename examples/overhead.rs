//! What a stack adds to a call: your tool alone beside your tool with its layers.
//!
//! `cargo run --release -p examples --example overhead`
use tool_reliability::ToolStack;
use tower::service_fn;
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_testkit::overhead;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let tool = service_fn(async |_: ToolCall| Ok::<_, BoxError>(ToolOutcome::default()));
    let stacked = ToolStack::default().service(tool);
    let params = Params::from_text(r#"{"from": "GRU", "to": "LIS"}"#)?;
    let call =
        |n| ToolCall::new("search", params.clone()).session("s").idempotency_key(format!("{n}"));
    println!("{}", overhead::measure(tool, stacked, call).await?);
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
