//! Two single layers without the stack: retries with a budget, inside a loop guard.
//!
//! `cargo run -p examples --example a_la_carte`
use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{BoxError, Effect, Params, ToolCall, ToolError, ToolOutcome};
use tr_loopguard::{LoopDetected, LoopGuardLayer};
use tr_retry::{Budget, RetryConfig, RetryLayer};

static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

/// Returns 503 at first, and an error if the path is missing.
async fn read(call: ToolCall) -> Result<ToolOutcome, BoxError> {
    let attempt = ATTEMPTS.fetch_add(1, Relaxed) + 1;
    let failure = |code, message| Ok(ToolOutcome::failure(ToolError::new(code, message)));
    if call.parts().params.get() == "{}" {
        return failure("invalid_params", "Missing required parameter: path");
    }
    match attempt {
        1 | 2 => failure("unavailable", "503 Service Unavailable"),
        _ => Ok(ToolOutcome::success(serde_json::json!("text of the file"))),
    }
}

fn call(params: &str) -> Result<ToolCall, BoxError> {
    let call = ToolCall::new("read", Params::from_text(params)?);
    Ok(call.effect(Effect::ReadOnly).session("s-1").turn("t-1"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut config = RetryConfig::default();
    config.base = Duration::from_millis(2);
    let budget = Budget::builder().per_success(0.1).capacity(20).build()?;
    let mut read = ServiceBuilder::new()
        // Outermost: it counts the failures that the model sees, not those that a retry has recovered.
        .layer(LoopGuardLayer::default())
        .layer(RetryLayer::builder().config(config).budget(budget.clone()).build()?)
        .service(service_fn(read));

    let found = read.ready().await?.call(call(r#"{"path": "a.txt"}"#)?).await?;
    println!(
        "read a.txt: {} after {} attempts; {} retries are left in the budget",
        found.content().map_or("nothing", |content| content.get()),
        ATTEMPTS.swap(0, Relaxed),
        budget.available(),
    );
    assert_eq!(found.retried().len(), 2);

    for nth in 1..=2 {
        let failed = read.ready().await?.call(call("{}")?).await?;
        let error = failed.error().ok_or("a path is missing")?;
        println!(
            "read {{}}, call {nth}: {}; the model reads: {:?}",
            error.message,
            failed.parts().notes
        );
    }
    let refused = read.ready().await?.call(call("{}")?).await.expect_err("a loop");
    println!("read {{}}, call 3: not run: {refused}");
    assert!(refused.is::<LoopDetected>());
    assert_eq!(ATTEMPTS.load(Relaxed), 2, "one attempt for each call that ran");
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
