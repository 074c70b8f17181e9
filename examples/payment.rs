//! The whole stack around a payment: one charge per key, also for repeats and lost answers.
//!
//! `cargo run -p examples --example payment`
use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tool_reliability::{ToolStack, idempotency::Resolution};
use tower::{Service, ServiceExt, service_fn};
use tr_core::{BoxError, Effect, Params, ToolCall, ToolOutcome, failure_info};

static CHARGES: AtomicU32 = AtomicU32::new(0);

/// Charges a card. For order 43 the answer is lost.
async fn charge(call: ToolCall) -> Result<ToolOutcome, BoxError> {
    let charge = CHARGES.fetch_add(1, Relaxed) + 1;
    if call.parts().params.get().contains("43") {
        std::future::pending::<()>().await;
    }
    Ok(receipt(charge))
}

fn receipt(charge: u32) -> ToolOutcome {
    ToolOutcome::success(serde_json::json!({ "charge": charge }))
}

/// An agent's call. The idempotency key makes two calls one payment.
fn payment(order: u32, cents: u32) -> Result<ToolCall, BoxError> {
    let params = format!(r#"{{"order": {order}, "cents": {cents}}}"#);
    let mut call = ToolCall::new("pay", Params::from_text(params)?)
        .effect(Effect::Mutating)
        .session("s-1")
        .idempotency_key(format!("order-{order}"));
    call.parts_mut().hints.timeout = Some(Duration::from_millis(20));
    Ok(call)
}

fn content(outcome: &ToolOutcome) -> &str {
    outcome.content().map_or("nothing", |content| content.get())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let stack = ToolStack::default();
    let mut pay = stack.service(service_fn(charge));

    println!("── a key, and a replay");
    let first = pay.ready().await?.call(payment(42, 500)?).await?;
    println!("first:  {}", content(&first));
    let again = pay.ready().await?.call(payment(42, 500)?).await?;
    println!("again:  {}, from the record: {}", content(&again), again.from_cache());
    assert!(!first.from_cache() && again.from_cache());
    let other = pay.ready().await?.call(payment(42, 900)?).await;
    println!("same key, other amount: {}", other.expect_err("a conflict"));
    assert_eq!(CHARGES.load(Relaxed), 1);

    println!("── an answer that is lost");
    let lost = pay.ready().await?.call(payment(43, 500)?).await.expect_err("it times out");
    println!("first:  {lost}, ran: {:?}", failure_info(&*lost).map(tr_core::FailureInfo::ran));
    let again =
        pay.ready().await?.call(payment(43, 500)?).await.expect_err("the outcome is unknown");
    println!("again:  {again}");
    assert_eq!(CHARGES.load(Relaxed), 2, "it was not charged again to find out");

    println!("── an operator asks the bank, and settles it");
    let unknown = stack.records().unknown();
    let [record] = &unknown[..] else { return Err("one record is unknown".into()) };
    let key = record.hashed_key().ok_or("a record of ours")?;
    stack.records().settle(&key, Resolution::Done(receipt(2)))?;
    let settled = pay.ready().await?.call(payment(43, 500)?).await?;
    println!("again:  {}, from the record: {}", content(&settled), settled.from_cache());
    assert!(settled.from_cache());
    assert_eq!(CHARGES.load(Relaxed), 2);
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
