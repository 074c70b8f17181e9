//! How many calls a turn and a session may have.
use std::time::Duration;
use tokio::time::advance;
use tower::{Layer, ServiceExt};
use tr_core::{Params, Ran, ToolCall, ToolManifest, failure_info};
use tr_loopguard::{Builder, LoopGuard, LoopGuardLayer, Mode, ToolCallLimit};
use tr_testkit::calls::{ScriptedTool, answers};

fn guard_of(builder: Builder) -> LoopGuard<ScriptedTool> {
    let tool = ScriptedTool::script([answers("{}")]).then_repeat_last();
    builder.build().unwrap().layer(tool)
}

fn call(tool: &str, session: &str, turn: Option<&str>) -> ToolCall {
    let call = ToolCall::new(tool, Params::empty_object()).session(session);
    match turn {
        Some(turn) => call.turn(turn),
        None => call,
    }
}

/// The refusal of a call, if it was refused.
async fn refused(guard: &LoopGuard<ScriptedTool>, call: ToolCall) -> Option<String> {
    let error = guard.clone().oneshot(call).await.err()?;
    assert_eq!(failure_info(&*error).unwrap().ran(), Ran::No);
    assert_eq!(failure_info(&*error).unwrap().code(), "tool_call_limit");
    assert!(error.is::<ToolCallLimit>());
    Some(error.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_turn_has_no_more_calls_than_it_may_whatever_their_ends() {
    let guard = guard_of(LoopGuardLayer::builder().calls_per_turn(3));
    for tool in ["read", "write", "read"] {
        assert_eq!(refused(&guard, call(tool, "s", Some("t"))).await, None);
    }
    let said = refused(&guard, call("list", "s", Some("t"))).await.unwrap();
    assert_eq!(
        said,
        "[TOOL CALL LIMIT] 3 tool calls in this turn, which is its limit. \nThis call was not made. Finish with what you have, or ask the user."
    );
    let noting = guard_of(LoopGuardLayer::builder().calls_per_turn(1).mode(Mode::Note));
    for _ in 0..3 {
        assert_eq!(refused(&noting, call("read", "s", Some("t"))).await, None);
    }
    // A named turn does not end by a pause.
    advance(Duration::from_secs(3_600)).await;
    assert!(refused(&guard, call("list", "s", Some("t"))).await.is_some());
    for (session, turn) in [("s", "u"), ("r", "t")] {
        assert_eq!(refused(&guard, call("list", session, Some(turn))).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_a_name_ends_after_a_pause_or_where_it_is_said() {
    let layer = LoopGuardLayer::builder().calls_per_turn(2).build().unwrap();
    let tool = ScriptedTool::script([answers("{}")]).then_repeat_last();
    let guard = layer.layer(tool);
    let mut passed = 0;
    for _ in 0..4 {
        passed += usize::from(refused(&guard, call("read", "s", None)).await.is_none());
        advance(Duration::from_secs(50)).await;
    }
    assert_eq!(passed, 2, "pauses of less than a minute end nothing");
    advance(Duration::from_secs(60)).await;
    assert_eq!(refused(&guard, call("read", "s", None)).await, None);
    assert_eq!(refused(&guard, call("read", "s", None)).await, None);
    assert!(refused(&guard, call("read", "s", None)).await.is_some());
    layer.turns().unwrap().begin(Some("s"));
    assert_eq!(refused(&guard, call("read", "s", None)).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_and_a_tool_have_limits_of_their_own() {
    let guard = guard_of(LoopGuardLayer::builder().calls_per_session(3));
    let mut search = ToolManifest::new("search");
    search.loops.calls_per_turn = Some(1);
    let search = std::sync::Arc::new(search);
    let search = |turn| call("search", "s", Some(turn)).manifested(search.clone());
    assert_eq!(refused(&guard, search("1")).await, None);
    let said = refused(&guard, search("1")).await.unwrap();
    assert!(said.contains("1 tool calls of \"search\" in this turn"), "{said}");
    assert_eq!(refused(&guard, search("2")).await, None);
    assert_eq!(refused(&guard, call("read", "s", Some("2"))).await, None);
    let said = refused(&guard, call("read", "s", Some("3"))).await.unwrap();
    assert!(said.contains("3 tool calls in this session"), "{said}");
    assert_eq!(refused(&guard, call("read", "other", Some("3"))).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_counts_of_many_turns_are_bounded() {
    let guard = guard_of(LoopGuardLayer::builder().calls_per_turn(1).max_turns(64));
    for turn in 0..10_000 {
        assert_eq!(refused(&guard, call("read", "s", Some(&turn.to_string()))).await, None);
    }
    // The newest is kept.
    assert!(refused(&guard, call("read", "s", Some("9999"))).await.is_some());
}
