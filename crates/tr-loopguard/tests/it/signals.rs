//! The signals through the layer: what a model sees, what is declared, and bad input.
use std::{process::Command, sync::Arc, time::Duration};
use tokio::time::advance;
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{
    BoxError, Json, Params, Ran, ToolCall, ToolManifest, ToolOutcome, Verdict, code, failure_info,
    manifest::InputSchema,
};
use tr_loopguard::{Builder, LoopDetected, LoopGuard, LoopGuardLayer, NON_RETRYABLE, Signals};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails, reports},
    tool::{Handle, Step},
};

fn watched() -> Builder {
    LoopGuardLayer::builder().signals(Signals::default())
}

fn guard(builder: Builder, step: Step<ToolOutcome>) -> (LoopGuard<ScriptedTool>, Handle<ToolCall>) {
    let tool = ScriptedTool::script([step]).then_repeat_last();
    let handle = tool.handle();
    (builder.build().unwrap().layer(tool), handle)
}

fn call(tool: &str) -> ToolCall {
    ToolCall::new(tool, Params::empty_object()).session("s").turn("t")
}

#[tokio::test(start_paused = true)]
async fn a_repeated_answer_is_warned_of_and_then_refused() {
    let (guard, tool) = guard(watched(), answers("a.rs"));
    for n in 1..=20 {
        let outcome = guard.clone().oneshot(call("ls")).await.unwrap();
        let notes: Vec<_> = outcome.parts().notes.iter().map(|note| &**note).collect();
        let warning = format!(
            "[LOOP WARNING] Tool \"ls\" gave the same answer to the same call {n} times. \n\
             Repeating this changes nothing. Use the answers that you have, or change something first."
        );
        assert_eq!(notes, if n < 10 { vec![] } else { vec![&*warning] });
    }
    let error = guard.clone().oneshot(call("ls")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "[LOOP DETECTED] Tool \"ls\" gave the same answer to the same call 20 times. \n\
         This call was not executed, and will not be in this turn. \n\
         Try a different approach or report the issue."
    );
    let found = error.downcast_ref::<LoopDetected>().unwrap();
    assert_eq!((found.rule(), found.failures()), ("repeat", 20));
    assert_eq!(failure_info(&*error).unwrap().ran(), Ran::No);
    assert_eq!(tool.calls(), 20);
    // The verdict holds for the turn, and dies with it.
    advance(Duration::from_secs(3600)).await;
    assert!(guard.clone().oneshot(call("ls")).await.is_err());
    assert!(guard.clone().oneshot(call("ls").turn("u")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn calls_without_turn_and_session_are_guarded_too() {
    let unnamed = || ToolCall::new("read", Params::empty_object());
    for builder in [LoopGuardLayer::builder(), watched()] {
        let (guard, tool) = guard(builder, reports("e", "Missing required parameter: path"));
        for _ in 0..2 {
            guard.clone().oneshot(unnamed()).await.unwrap();
        }
        assert!(guard.clone().oneshot(unnamed()).await.is_err());
        assert_eq!(tool.calls(), 2);
    }
    // Without turns a success is remarked and never refused.
    let (guard, tool) = guard(watched(), answers("same"));
    for n in 1..=30 {
        let outcome = guard.clone().oneshot(unnamed()).await.unwrap();
        assert_eq!(outcome.parts().notes.is_empty(), n < 10);
    }
    assert_eq!(tool.calls(), 30);
    // Without turns nothing counts for longer than a minute.
    advance(Duration::from_secs(60)).await;
    assert!(guard.clone().oneshot(unnamed()).await.unwrap().parts().notes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_its_schema_is_seen() {
    let schema = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}"#;
    let schema = Arc::new(InputSchema::compile(&Json::from_text(schema).unwrap()).unwrap());
    let checked = service_fn(move |call: ToolCall| {
        let checked = schema.check(&call.parts().params).map(|()| ToolOutcome::default());
        std::future::ready(checked.map_err(BoxError::from))
    });
    let guard = watched().build().unwrap().layer(checked);
    for n in 0..2 {
        let error = guard.clone().oneshot(call("read")).await.unwrap_err().to_string();
        assert!(error.contains("path") && error.contains(NON_RETRYABLE), "{error}");
        assert_eq!(error.contains("[LOOP DETECTED]"), n == 1);
    }
    assert!(guard.clone().oneshot(call("read")).await.unwrap_err().is::<LoopDetected>());
}

/// A guard that only remarks says it ever more rarely, and refuses nothing by signals.
#[tokio::test(start_paused = true)]
async fn signals_that_refuse_nothing_are_told_ever_more_rarely() {
    let signals = || LoopGuardLayer::builder().signals(Signals::default().refuse(false));
    for call in [call("key"), ToolCall::new("key", Params::empty_object())] {
        let (guard, tool) = guard(signals(), answers("ok"));
        let mut remarked = Vec::new();
        for n in 1..=100 {
            let outcome = guard.clone().oneshot(call.clone()).await.unwrap();
            if !outcome.parts().notes.is_empty() {
                remarked.push(n);
            }
        }
        assert_eq!((remarked, tool.calls()), (vec![10, 20, 40, 80], 100));
    }
    let mut tool = ToolManifest::new("key");
    tool.loops.repeats = Some(60);
    let tool = Arc::new(tool);
    let (guard, _) = guard(signals(), answers("ok"));
    for n in 1..=60 {
        let outcome = guard.clone().oneshot(call("key").manifested(tool.clone())).await.unwrap();
        assert_eq!(outcome.parts().notes.is_empty(), n < 60);
    }
}

/// Where the turn is known, what is remarked beside them changes nothing of the limits.
#[tokio::test(start_paused = true)]
async fn signals_that_refuse_nothing_leave_the_limits_of_a_turn_to_the_letter() {
    let steps = [reports("e", "Service unavailable (503)"), answers("edited")];
    let tool = ScriptedTool::script(steps.iter().cycle().take(4).cloned()).then_repeat_last();
    let handle = tool.handle();
    let builder = LoopGuardLayer::builder().signals(Signals::default().refuse(false));
    let guard = builder.build().unwrap().layer(tool);
    for name in ["test", "edit", "test", "edit"] {
        guard.clone().oneshot(call(name)).await.unwrap();
    }
    assert!(guard.clone().oneshot(call("test")).await.unwrap_err().is::<LoopDetected>());
    assert_eq!(handle.calls(), 4);
}

/// Another error is no progress: a call that fails with a new message each time still fails.
#[tokio::test(start_paused = true)]
async fn a_call_that_fails_in_other_words_each_time_is_stopped_too() {
    for builder in [LoopGuardLayer::builder(), watched()] {
        let words = ["no row", "no table", "no schema", "no database", "no host", "nothing"];
        let tool = ScriptedTool::script(words.map(|text| reports("e", text))).then_repeat_last();
        let handle = tool.handle();
        let guard = builder.build().unwrap().layer(tool);
        for _ in 0..8 {
            let _ = guard.clone().oneshot(call("query")).await;
        }
        assert_eq!(handle.calls(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_names_its_request_is_the_same_error() {
    for builder in [LoopGuardLayer::builder(), watched()] {
        let step = |id: &str| reports("e", &format!("No such order (request {id})"));
        let tool = ScriptedTool::script([
            step("6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
            step("ba7e3f02-ac04-41f5-9d7c-aacbd4e2a1f0"),
        ]);
        let handle = tool.handle();
        let guard = builder.build().unwrap().layer(tool);
        for _ in 0..2 {
            guard.clone().oneshot(call("order")).await.unwrap();
        }
        assert!(guard.clone().oneshot(call("order")).await.unwrap_err().is::<LoopDetected>());
        assert_eq!(handle.calls(), 2);
    }
}

/// Who takes a call back does not say that it is wrong.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_withdrawn_is_no_failure() {
    for builder in [LoopGuardLayer::builder(), watched()] {
        let withdrawn = fails(code::CANCELLED, Verdict::Cancelled, Ran::Unknown);
        let (guard, tool) = guard(builder, withdrawn);
        for _ in 0..12 {
            let error = guard.clone().oneshot(call("ask")).await.unwrap_err();
            assert_eq!(failure_info(&*error).unwrap().code(), code::CANCELLED);
        }
        assert_eq!(tool.calls(), 12);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_its_own_limit() {
    let mut tool = ToolManifest::new("read");
    tool.loops.max_identical = Some(4);
    let tool = Arc::new(tool);
    for builder in [LoopGuardLayer::builder(), watched()] {
        let (guard, handle) = guard(builder, reports("e", "no such file"));
        for _ in 0..6 {
            let _ = guard.clone().oneshot(call("read").manifested(tool.clone())).await;
        }
        assert_eq!(handle.calls(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_that_pass_count_only_where_they_shall() {
    let failing = || reports("e", "Service unavailable (503)");
    for (signals, runs) in [(Signals::default(), 10), (Signals::default().count_transient(true), 2)]
    {
        let (guard, tool) = guard(LoopGuardLayer::builder().signals(signals), failing());
        for _ in 0..12 {
            let _ = guard.clone().oneshot(call("fetch")).await;
        }
        assert_eq!(tool.calls(), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_cannot_be_compared_are_no_loop() {
    #[derive(Clone)]
    struct Mine;
    impl tr_core::LoopPolicy<(), ()> for Mine {
        type Subject = ();
        fn subject(&self, (): &()) {}
        fn details<'r>(&self, (): &'r ()) -> tr_core::LoopRef<'r> {
            let mut call = tr_core::LoopRef::new(tr_core::TurnRef::default(), "t");
            call.read_only = true;
            call
        }
        fn args_hash(&self, (): &()) -> u64 {
            0
        }
        fn failure<'r>(&self, _: tr_core::End<'r, ()>) -> Option<std::borrow::Cow<'r, str>> {
            None
        }
        fn add_note(&self, (): &mut (), note: &str) {
            panic!("nothing to note, but {note}");
        }
    }

    let guard = watched().policy(Mine).build().unwrap();
    let guard = guard.layer(service_fn(|()| std::future::ready(Ok::<_, BoxError>(()))));
    for _ in 0..100 {
        guard.clone().oneshot(()).await.unwrap();
    }
}

#[test]
fn all_faults_of_the_signals_are_named() {
    let signals = Signals::default()
        .repeats(1)
        .failing_repeats(0)
        .rounds(1)
        .same_error(100_001)
        .pace(Duration::ZERO)
        .quiet(Duration::ZERO)
        .volatile([""]);
    let builder = LoopGuardLayer::builder().max_identical_failures(0).signals(signals);
    let error = builder.build().unwrap_err().to_string();
    for fault in [
        "`max_identical_failures` is 0",
        "`signals.repeats` is 1, must be 2 to 100000",
        "`signals.failing_repeats` is 0",
        "`signals.rounds` is 1",
        "`signals.same_error` is 100001",
        "`signals.pace` is 0",
        "`signals.quiet` is 0",
        "`signals.volatile` has an empty name",
    ] {
        assert!(error.contains(fault), "{error}");
    }
}

/// Fails calls whose log cannot be written, and is run once more below to see what it says.
#[tokio::test(start_paused = true)]
async fn many_malformed_calls_and_no_log() {
    let builder = LoopGuardLayer::builder().log_path("/proc/no/such/log");
    let (guard, tool) = guard(builder, reports("e", "Missing required parameter: path"));
    for turn in 0..5 {
        guard.clone().oneshot(call("read").turn(turn.to_string())).await.unwrap();
    }
    assert_eq!(tool.calls(), 5);
}

#[test]
fn a_log_that_cannot_be_written_is_reported_once() {
    let me = std::env::current_exe().unwrap();
    let mut again = Command::new(me);
    let end =
        again.args(["--exact", "signals::many_malformed_calls_and_no_log", "--nocapture"]).output();
    let end = end.unwrap();
    assert!(end.status.success());
    let said = String::from_utf8(end.stderr).unwrap();
    assert_eq!(said.matches("tr-loopguard: cannot write /proc/no/such/log").count(), 1, "{said}");
}

#[tokio::test(start_paused = true)]
async fn sessions_with_signals_are_apart_and_bounded() {
    let (guard, tool) = guard(watched().max_turns(64), answers("same"));
    for n in 0..1000 {
        guard.clone().oneshot(call("read").session(format!("s{n}"))).await.unwrap();
    }
    assert_eq!(tool.calls(), 1000);
}
