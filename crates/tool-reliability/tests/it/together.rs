//! One call through all layers of one stack, each of which leaves its trace.
use std::sync::{Arc, Mutex};
use tool_reliability::{
    ToolStack,
    integrity::{Format, Sessions},
};
use tower::{Service as _, ServiceExt};
use tr_core::{
    BoxError, BreakerState, CallInfo, Effect, Event, KeyRef, Observer, Params, Ran, ToolCall,
    ToolManifest, ToolOutcome, Verdict, classify,
};
use tr_testkit::calls::{ScriptedTool, answers, fails, reports};

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let what = match event {
            Event::Retry { attempt, reason, .. } => format!("retry after {attempt}: {reason}"),
            Event::Replayed { state, .. } => format!("replay: {state}"),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(format!("{} {what}", call.tool));
    }
}

#[tokio::test(start_paused = true)]
async fn every_layer_does_its_part() {
    let sessions = Sessions::new(Format::AnthropicMessages);
    let heard = Arc::new(Heard::default());
    let stack =
        ToolStack::builder().sessions(sessions.clone()).observer(heard.clone()).build().unwrap();
    let script = [fails("connection_reset", Verdict::TRANSIENT, Ran::Unknown), answers("42 EUR")];
    let tool = stack.service(ScriptedTool::script(script));

    let call = |id: &str| {
        ToolCall::new("price", Params::from_text(r#"{"of": "tea"}"#).unwrap())
            .effect(Effect::ReadOnly)
            .session("s-1")
            .turn("t-1")
            .tool_call_id(id)
            .idempotency_key("tea-1")
    };
    let first = tool.clone().oneshot(call("toolu_1")).await.unwrap();
    assert_eq!(first.retried().len(), 1);
    let again = tool.oneshot(call("toolu_2")).await.unwrap();
    assert!(again.from_cache() && again.content() == first.content());

    // Retry and idempotency told the observer; the breaker counted; the loop guard saw no failure.
    let heard = heard.0.lock().unwrap().clone();
    assert_eq!(heard, ["price retry after 0: connection_reset", "price replay: done"]);
    let breaker = stack.breakers().get(KeyRef::new("price")).unwrap();
    assert_eq!((breaker.state(), breaker.counts().consecutive_failures), (BreakerState::Closed, 0));
    assert_eq!(stack.records().records().len(), 1);

    // Both uses have their results: a replay is an answer too.
    sessions.with("s-1", |session, _| {
        assert!(session.validate().valid);
        assert_eq!(session.transcript().len(), 4);
    });
}

/// The stack has room for as many calls as its idempotency layer, and says so.
#[tokio::test(start_paused = true)]
async fn load_shed_outside_of_the_stack_sheds_what_is_past_its_bound() {
    let stack = ToolStack::builder().idempotency(|layer| layer.max_in_flight(1)).build().unwrap();
    let slow = tower::service_fn(|_: ToolCall| async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        Ok::<_, tr_core::BoxError>(tr_core::ToolOutcome::success(serde_json::json!(1)))
    });
    let tool = stack.service(slow);
    let call = || ToolCall::new("price", Params::empty_object()).effect(Effect::ReadOnly);
    let mut shed = tower::load_shed::LoadShed::new(tool.clone());
    let running = shed.ready().await.unwrap().call(call());
    let refused = shed.ready().await.unwrap().call(call()).await.unwrap_err();
    assert!(refused.is::<tower::load_shed::error::Overloaded>(), "{refused}");
    running.await.unwrap();
    shed.ready().await.unwrap().call(call()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn si_10_a_successful_cycle_is_persisted_whole_and_a_failed_one_by_what_is_known() {
    let sessions = Sessions::new(Format::AnthropicMessages);
    let stack = ToolStack::builder().sessions(sessions.clone()).build().unwrap();
    let script = [answers("ok"), fails("invalid_input", Verdict::Permanent, Ran::No)];
    let tool = stack.service(ScriptedTool::script(script));
    let call = |id: &str| {
        ToolCall::new("pay", Params::empty_object()).session("s").turn("t").tool_call_id(id)
    };
    tool.clone().oneshot(call("toolu_1")).await.unwrap();
    tool.oneshot(call("toolu_2")).await.unwrap_err();
    sessions.with("s", |session, _| {
        assert!(session.validate().valid);
        // The second did not run, so nothing of it stays.
        assert_eq!(session.transcript().len(), 2);
    });
}

/// The layers know nothing of each other: the stack tells the guard what the sessions hear.
#[tokio::test(start_paused = true)]
async fn a_user_s_message_begins_a_turn_for_the_loop_guard() {
    let format = Format::AnthropicMessages;
    let sessions = Sessions::new(format);
    let stack = ToolStack::builder().sessions(sessions.clone()).build().unwrap();
    let missing = reports("invalid_params", "Missing required parameter: path");
    let script = ScriptedTool::script([missing]).then_repeat_last();
    let handle = script.handle();
    let tool = stack.service(script);
    let count = std::sync::atomic::AtomicUsize::new(0);
    let read = async || {
        let id = format!("toolu_{}", count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let call = ToolCall::new("read", Params::empty_object()).session("s").tool_call_id(id);
        tool.clone().oneshot(call).await.is_ok()
    };
    let say = |text: &str| {
        let message = format.read(text).unwrap();
        sessions.with("s", |session, _| session.push(message));
    };
    say(r#"{"role":"user","content":"Read it."}"#);
    assert_eq!((read().await, read().await, read().await), (true, true, false));
    // Nothing else ends the turn: neither an hour, nor results, nor somebody else's message.
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    say(
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":"x"}]}"#,
    );
    let other = format.read(r#"{"role":"user","content":"And me?"}"#).unwrap();
    sessions.with("other", |session, _| session.push(other));
    assert!(!read().await);
    say(r#"{"role":"user","content":[{"type":"text","text":"Try again."}]}"#);
    assert_eq!((read().await, read().await, read().await), (true, true, false));
    assert_eq!(handle.calls(), 4);
}

/// A catalog says which params say what is wanted: calls that agree in them are one call.
#[tokio::test(start_paused = true)]
async fn a_payment_of_one_order_is_one_call_and_a_declined_card_can_be_corrected() {
    let stack = ToolStack::builder().build().unwrap();
    let declined = fails("card_declined", Verdict::Permanent, Ran::Yes);
    let tool = stack.service(ScriptedTool::script([declined, answers("receipt 1")]));
    let mut manifest = ToolManifest::new("pay");
    manifest.effect = Some(Effect::Mutating);
    manifest.identity = vec!["/order_id".parse().unwrap()];
    let manifest = Arc::new(manifest);
    let pay = |params: &str| {
        let call = ToolCall::new("pay", Params::from_text(params).unwrap()).session("s-1");
        tool.clone().oneshot(call.manifested(manifest.clone()))
    };
    let code = |end: Result<ToolOutcome, BoxError>| match end {
        Ok(outcome) => outcome.error().map(|error| error.code.to_string()),
        Err(error) => Some(classify::error(&*error).end.code.to_owned()),
    };
    for _ in 0..2 {
        let end = pay(r#"{"order_id":42,"card":"a"}"#).await;
        assert_eq!(code(end).as_deref(), Some("card_declined"));
    }
    for replayed in [false, true] {
        let end = pay(r#"{"card":"b","order_id":42}"#).await.unwrap();
        assert_eq!((end.from_cache(), end.error().is_none()), (replayed, true));
    }
    let end = pay(r#"{"order_id":42,"card":"c"}"#).await;
    assert_eq!(code(end).as_deref(), Some("idempotency_conflict"));
}
