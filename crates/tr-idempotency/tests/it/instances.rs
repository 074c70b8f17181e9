//! Callers that name no session, and whose records other services share.
use crate::support::*;
use tr_core::{Effect, Ran, ToolCall, ToolOutcome, Verdict};
use tr_idempotency::{IdempotencyLayer, store::Memory};
use tr_testkit::tool::{Scripted, Step};

/// A service of this name, which tells its name, over a store that others share.
fn service(records: &Memory, name: Option<&str>) -> (Guarded, Asked) {
    let tells = name.unwrap_or("nobody").to_owned();
    let tool: Tool =
        Scripted::by(move |_, _| Step::Ok(ToolOutcome::success(serde_json::json!(tells))));
    let mut builder = IdempotencyLayer::builder().store(records.clone());
    if let Some(name) = name {
        builder = builder.instance(name);
    }
    let (service, _, asked) = guarded_by(&builder.build().unwrap(), tool);
    (service, asked)
}

fn nobody_s(key: &str) -> ToolCall {
    let mut call = pay(key);
    call.parts_mut().context.session = None;
    call
}

async fn answer(service: &Guarded, asked: ToolCall) -> String {
    call(service, asked).await.unwrap().content().unwrap().get().to_owned()
}

/// Today's attack: another service's caller guesses the key, and is given the answer.
#[tokio::test(start_paused = true)]
async fn one_service_is_not_given_another_s_answers() {
    let records = Memory::new();
    let (shop, shop_asked) = service(&records, Some("shop"));
    let (bank, bank_asked) = service(&records, Some("bank"));
    assert_eq!(answer(&shop, nobody_s("1")).await, r#""shop""#);
    assert_eq!(answer(&bank, nobody_s("1")).await, r#""bank""#);
    assert_eq!((shop_asked.calls(), bank_asked.calls()), (1, 1));
    // Callers with a session share it, as before.
    assert_eq!(answer(&shop, pay("2")).await, r#""shop""#);
    assert_eq!(answer(&bank, pay("2")).await, r#""shop""#);
}

#[tokio::test(start_paused = true)]
async fn a_service_of_the_same_name_runs_nothing_again_after_a_restart() {
    let records = Memory::new();
    let (before, _) = service(&records, Some("shop"));
    answer(&before, nobody_s("1")).await;
    let (after, asked) = service(&records, Some("shop"));
    assert!(call(&after, nobody_s("1")).await.unwrap().from_cache());
    assert_eq!(asked.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_name_the_call_is_refused_and_says_what_to_do() {
    let (service, asked) = service(&Memory::new(), None);
    let error = call(&service, nobody_s("1")).await.unwrap_err();
    let says = tr_core::causes(&*error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(says.contains("set a session, or the layer's `instance`"), "{says}");
    assert_eq!(refusal(Err(error)), told("invalid_envelope", Ran::No, Verdict::Permanent));
    assert_eq!(asked.calls(), 0);
    // A call that asked for no record gets none.
    let mut unasked = unkeyed(r#"{"amount":5}"#).effect(Effect::ReadOnly);
    unasked.parts_mut().context.session = None;
    assert!(!call(&service, unasked).await.unwrap().from_cache());
    assert_eq!(asked.calls(), 1);
}

/// What joins a call that was cut off lies in this process, store or no store.
#[tokio::test(start_paused = true)]
async fn a_payment_that_was_cut_off_is_joined_without_a_session_too() {
    let layer = IdempotencyLayer::builder().store(Memory::new()).build().unwrap();
    let (service, _, asked) = guarded_by(&layer, counting(10 * SECOND));
    let pay = || {
        let mut call = unkeyed(r#"{"amount":5}"#).effect(Effect::Mutating);
        call.parts_mut().context.session = None;
        call
    };
    start(&service, pay()).await.abort();
    settle().await;
    call(&service, pay()).await.unwrap();
    assert_eq!(asked.calls(), 1);
}

/// Records in the process are not shared, so services need no names.
#[tokio::test(start_paused = true)]
async fn without_a_store_no_name_is_needed() {
    let tool: Tool = Scripted::by(|_, _| Step::Ok(ToolOutcome::default()));
    let (service, _, asked) = guarded_by(&IdempotencyLayer::builder().build().unwrap(), tool);
    call(&service, nobody_s("1")).await.unwrap();
    assert!(call(&service, nobody_s("1")).await.unwrap().from_cache());
    assert_eq!(asked.calls(), 1);
}
