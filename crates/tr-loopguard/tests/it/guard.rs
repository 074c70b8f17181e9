//! The cases of the tool guard's specification.
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::advance;
use tower::{Layer, ServiceExt};
use tr_core::{
    CallInfo, Event, FailureInfo, Observer, Params, Ran, SetClock, ToolCall, ToolManifest,
    ToolOutcome, Verdict, code, failure_info,
};
use tr_loopguard::{
    Attribution, AttributionLog, Builder, LoopDetected, LoopGuard, LoopGuardLayer, Mode,
    NON_RETRYABLE, Noted, ToolErrorLimit, loop_detected, tool_error_limit, tool_errors,
};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails, reports},
    tool::{Handle, Step},
};

type Guard = LoopGuard<ScriptedTool>;
type Tool = Handle<ToolCall>;

fn guard(builder: Builder, script: impl IntoIterator<Item = Step<ToolOutcome>>) -> (Guard, Tool) {
    let tool = ScriptedTool::script(script).then_repeat_last();
    let handle = tool.handle();
    (builder.build().unwrap().layer(tool), handle)
}

fn call(tool: &str, params: &str) -> ToolCall {
    ToolCall::new(tool, Params::from_text(params).unwrap()).session("s").turn("t")
}

async fn notes(guard: &Guard, call: ToolCall) -> Vec<String> {
    let outcome = guard.clone().oneshot(call).await.unwrap();
    outcome.parts().notes.iter().map(ToString::to_string).collect()
}

fn missing() -> Step<ToolOutcome> {
    reports("invalid_params", "Missing required parameter: path")
}

#[tokio::test(start_paused = true)]
async fn tg_1_identical_failure_loop() {
    let (guard, tool) = guard(LoopGuardLayer::builder(), [missing()]);
    let read = || call("read", "{}");
    assert_eq!(notes(&guard, read()).await, [NON_RETRYABLE]);
    assert_eq!(notes(&guard, read()).await, [NON_RETRYABLE.to_owned(), loop_detected("read", 2)]);
    let error = guard.clone().oneshot(read()).await.unwrap_err();
    assert_eq!(error.to_string(), loop_detected("read", 2));
    assert_eq!(error.downcast_ref::<LoopDetected>().unwrap().failures(), 2);
    assert_eq!(failure_info(&*error).unwrap().ran(), Ran::No);
    assert_eq!(tool.calls(), 2);
    // Another call of the same tool is another matter.
    notes(&guard, call("read", r#"{"path": "a"}"#)).await;
    assert_eq!(tool.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_the_records_refuse_is_no_failure_of_the_tool() {
    for code in [
        code::IDEMPOTENCY_CONFLICT,
        code::IDEMPOTENCY_IN_FLIGHT,
        code::OUTCOME_UNKNOWN,
        code::ANSWER_NOT_KEPT,
        code::RECORD_UNREADABLE,
    ] {
        let refused = || FailureInfo::new(code, Ran::Unknown, Verdict::Permanent);
        let script = [
            fails(code::TIMEOUT, Verdict::TRANSIENT, Ran::Unknown),
            Step::err(refused().by_layer()),
            Step::err(refused().by_layer()),
            answers("receipt"),
        ];
        let (payments, tool) = guard(LoopGuardLayer::builder(), script);
        let pay = || call("pay", r#"{"cents": 5}"#);
        for _ in 0..3 {
            payments.clone().oneshot(pay()).await.unwrap_err();
        }
        // The late answer is recorded now, and reaches who asks again.
        payments.clone().oneshot(pay()).await.unwrap();
        assert_eq!(tool.calls(), 4);
        // The same code by the tool's own word is a failure of the tool.
        let (own, tool) = guard(LoopGuardLayer::builder(), [Step::err(refused())]);
        for _ in 0..3 {
            own.clone().oneshot(pay()).await.unwrap_err();
        }
        assert_eq!(tool.calls(), 2, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn tg_1_identical_transient_failures_are_a_loop_too() {
    let step = fails("timeout", Verdict::TRANSIENT, Ran::Unknown);
    let (guard, tool) = guard(LoopGuardLayer::builder(), [step]);
    let search = || call("search", "{}");
    let first = guard.clone().oneshot(search()).await.unwrap_err();
    assert!(first.downcast_ref::<Noted>().is_none());
    let second = guard.clone().oneshot(search()).await.unwrap_err();
    assert_eq!(second.downcast_ref::<Noted>().unwrap().notes(), [loop_detected("search", 2)]);
    assert_eq!(failure_info(&*second).unwrap().ran(), Ran::Unknown);
    assert!(guard.clone().oneshot(search()).await.unwrap_err().is::<LoopDetected>());
    assert_eq!(tool.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn tg_2_different_failures_hit_the_cap() {
    let script = [
        reports("a", "Missing required parameter: path"),
        reports("b", "no such file"),
        answers("fine"),
        reports("c", "permission denied"),
        answers("fine"),
        reports("d", "connection reset"),
        reports("e", "not a directory"),
    ];
    let (guard, tool) = guard(LoopGuardLayer::builder(), script);
    for name in ["read", "stat", "echo", "write", "echo", "fetch"] {
        assert!(!notes(&guard, call(name, "{}")).await.contains(&tool_error_limit(5)));
    }
    assert_eq!(notes(&guard, call("list", "{}")).await, [tool_error_limit(5)]);
    let error = guard.clone().oneshot(call("echo", "{}")).await.unwrap_err();
    assert_eq!(error.to_string(), tool_error_limit(5));
    assert_eq!(error.downcast_ref::<ToolErrorLimit>().unwrap().failures(), 5);
    assert_eq!((tool.calls(), failure_info(&*error).unwrap().ran()), (7, Ran::No));
}

#[tokio::test(start_paused = true)]
async fn tg_3_mixed_success_and_failure() {
    let script = [missing(), answers("ok"), answers("ok"), missing(), answers("ok")];
    let (guard, tool) = guard(LoopGuardLayer::builder(), script);
    notes(&guard, call("read", "{}")).await;
    for _ in 0..2 {
        assert!(notes(&guard, call("read", r#"{"path":"a"}"#)).await.is_empty());
    }
    // The successes in between neither counted nor reset: this is the second failure.
    assert!(notes(&guard, call("read", "{}")).await.contains(&loop_detected("read", 2)));
    for _ in 0..20 {
        assert!(notes(&guard, call("read", r#"{"path":"a"}"#)).await.is_empty());
    }
    assert_eq!(tool.calls(), 24);
}

#[derive(Debug, Default)]
struct Kept(Mutex<Vec<String>>);

impl AttributionLog for Kept {
    fn write(&self, entry: &Attribution<'_>) {
        self.0.lock().unwrap().push(entry.to_json());
    }
}

#[tokio::test(start_paused = true)]
async fn tg_5_model_attribution() {
    let log = Arc::new(Kept::default());
    let builder = LoopGuardLayer::builder()
        .log(log.clone())
        .wall_clock(Arc::new(SetClock::at(1_771_672_800_000)));
    let (guard, _) = guard(builder, [missing()]);
    let edit = |turn: &str, id: &str| {
        let params = r#"{"file":"secret","lines":[1],"deep":{"a":1}}"#;
        call("edit", params).turn(turn).tool_call_id(id)
    };
    notes(&guard, edit("1", "toolu_01")).await;
    notes(&guard, edit("1", "call_7")).await;
    notes(&guard, edit("2", "x")).await;
    let mut named = edit("3", "call_8");
    named.parts_mut().model = Some("MiniMax-M2.5".into());
    named.parts_mut().provider = Some("fireworks".into());
    notes(&guard, named).await;

    let entries: Vec<serde_json::Value> =
        log.0.lock().unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let field =
        |name| -> Vec<_> { entries.iter().map(|entry| entry[name].as_str().unwrap()).collect() };
    assert_eq!(field("model"), ["anthropic", "fireworks/openai-compat", "unknown", "MiniMax-M2.5"]);
    assert_eq!(field("provider"), ["anthropic", "fireworks/openai-compat", "unknown", "fireworks"]);
    assert_eq!(field("action"), ["continue", "loop-detected", "continue", "continue"]);
    assert_eq!(
        entries[0],
        serde_json::json!({
            "timestamp": "2026-02-21T11:20:00.000Z", "model": "anthropic", "provider": "anthropic",
            "toolName": "edit", "toolCallId": "toolu_01", "errorType": "non-retryable",
            "args": { "file": "string", "lines": "array", "deep": "object" }, "action": "continue",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn tg_6_turn_reset() {
    let layer = LoopGuardLayer::default();
    let guard = layer.layer(ScriptedTool::script([missing()]).then_repeat_last());
    for _ in 0..2 {
        notes(&guard, call("read", "{}")).await;
    }
    assert!(guard.clone().oneshot(call("read", "{}")).await.is_err());
    assert_eq!(notes(&guard, call("read", "{}").turn("next")).await, [NON_RETRYABLE]);
    // A turn without a name begins with `Turns::begin`.
    let unnamed = || ToolCall::new("read", Params::empty_object()).session("s");
    for _ in 0..2 {
        notes(&guard, unnamed()).await;
    }
    assert!(guard.clone().oneshot(unnamed()).await.is_err());
    layer.turns().unwrap().begin(Some("s"));
    assert_eq!(notes(&guard, unnamed()).await, [NON_RETRYABLE]);
    notes(&guard, unnamed()).await;
    // Until then it lasts, however long that is.
    advance(Duration::from_secs(3600)).await;
    assert!(guard.clone().oneshot(unnamed()).await.is_err());
    layer.turns().unwrap().begin(Some("s"));
    assert_eq!(notes(&guard, unnamed()).await, [NON_RETRYABLE]);
    // Without it, a turn ends when its failures expire.
    let unknown = || unnamed().session("silent");
    for _ in 0..2 {
        notes(&guard, unknown()).await;
    }
    assert!(guard.clone().oneshot(unknown()).await.is_err());
    advance(Duration::from_secs(60)).await;
    assert_eq!(notes(&guard, unknown()).await, [NON_RETRYABLE]);
    // Or never begins anything any more.
    layer.turns().unwrap().end(Some("s"), None);
    for _ in 0..2 {
        notes(&guard, unnamed()).await;
    }
    advance(Duration::from_secs(60)).await;
    assert_eq!(notes(&guard, unnamed()).await, [NON_RETRYABLE]);
}

#[tokio::test(start_paused = true)]
async fn tg_7_config_override() {
    let builder = || LoopGuardLayer::builder().max_identical_failures(3).max_failures_per_turn(4);
    let (guard, tool) = guard(builder(), [missing()]);
    for _ in 0..2 {
        assert_eq!(notes(&guard, call("read", "{}")).await, [NON_RETRYABLE]);
    }
    assert!(notes(&guard, call("read", "{}")).await.contains(&loop_detected("read", 3)));
    assert!(guard.clone().oneshot(call("read", "{}")).await.is_err());
    assert_eq!(
        notes(&guard, call("read", "[]")).await,
        [NON_RETRYABLE.to_owned(), tool_error_limit(4)]
    );
    assert_eq!(tool.calls(), 4);

    let (off, tool) = self::guard(builder().enabled(false), [missing()]);
    for _ in 0..10 {
        assert!(notes(&off, call("read", "{}")).await.is_empty());
    }
    assert_eq!(tool.calls(), 10);
}

#[tokio::test(start_paused = true)]
async fn strict_needs_no_turn_and_note_refuses_nothing() {
    let unnamed = |tool: &str| ToolCall::new(tool, Params::empty_object()).session("s");
    let (strict, tool) = guard(LoopGuardLayer::builder().mode(Mode::Strict), [missing()]);
    for n in 1..=4 {
        notes(&strict, unnamed(&format!("tool{n}"))).await;
    }
    assert!(notes(&strict, unnamed("tool5")).await.contains(&tool_error_limit(5)));
    assert!(strict.clone().oneshot(unnamed("tool6")).await.unwrap_err().is::<ToolErrorLimit>());
    assert_eq!(tool.calls(), 5);

    for turn in [None, Some("t")] {
        let (noting, tool) = guard(LoopGuardLayer::builder().mode(Mode::Note), [missing()]);
        let read = || turn.map_or(unnamed("read"), |turn| unnamed("read").turn(turn));
        for n in 1..=9 {
            let mut expected = vec![NON_RETRYABLE.to_owned()];
            expected.extend((n >= 2).then(|| loop_detected("read", n)));
            let within = turn.is_none().then_some(Duration::from_secs(60));
            expected.extend((n >= 5).then(|| tool_errors(n, within)));
            assert_eq!(notes(&noting, read()).await, expected);
        }
        assert_eq!(tool.calls(), 9);
    }

    let (off, tool) = guard(LoopGuardLayer::builder().mode(Mode::Off), [missing()]);
    for _ in 0..9 {
        assert!(notes(&off, unnamed("read")).await.is_empty());
    }
    assert_eq!(tool.calls(), 9);
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_failures_is_a_tool_s_own_matter() {
    let mut patient = ToolManifest::new("patient");
    patient.loops.max_failures_per_turn = Some(7);
    let patient = Arc::new(patient);
    let words = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (guard, tool) = guard(LoopGuardLayer::builder(), words.map(|text| reports("e", text)));
    for _ in 0..5 {
        notes(&guard, call("hasty", "{}")).await;
    }
    assert!(guard.clone().oneshot(call("hasty", "{}")).await.unwrap_err().is::<ToolErrorLimit>());
    let patiently = || call("patient", "{}").manifested(patient.clone());
    assert!(notes(&guard, patiently()).await.is_empty());
    assert_eq!(notes(&guard, patiently()).await, [tool_error_limit(7)]);
    assert!(guard.clone().oneshot(patiently()).await.unwrap_err().is::<ToolErrorLimit>());
    assert_eq!(tool.calls(), 7);
}

#[test]
fn all_faults_of_the_settings_are_named() {
    let error = LoopGuardLayer::builder()
        .max_identical_failures(0)
        .max_failures_per_turn(1001)
        .memory(Duration::ZERO)
        .max_turns(0)
        .build()
        .unwrap_err()
        .to_string();
    for name in
        ["`max_identical_failures` is 0", "`max_failures_per_turn` is 1001", "memory", "max_turns"]
    {
        assert!(error.contains(name), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_written_fails_no_call() {
    let (guard, _) = guard(LoopGuardLayer::builder().log_path("/proc/no/such/log"), [missing()]);
    assert_eq!(notes(&guard, call("read", "{}")).await, [NON_RETRYABLE]);
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<(String, u32, bool)>>);

impl Observer for Heard {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        if let Event::Loop { rule, count, blocked } = event {
            self.0.lock().unwrap().push((format!("{} {rule}", call.tool), *count, *blocked));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_observer_hears_of_broken_loops() {
    let heard = Arc::new(Heard::default());
    let (guard, _) = guard(LoopGuardLayer::builder().observer(heard.clone()), [missing()]);
    for _ in 0..3 {
        let _ = guard.clone().oneshot(call("read", "{}")).await;
    }
    let identical = "read identical".to_owned();
    assert_eq!(*heard.0.lock().unwrap(), [(identical.clone(), 2, false), (identical, 2, true)]);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_apart_and_bounded() {
    let (guard, tool) = guard(LoopGuardLayer::builder().max_turns(64), [missing()]);
    for n in 0..1000 {
        notes(&guard, call("read", "{}").session(format!("s{n}"))).await;
    }
    assert_eq!(tool.calls(), 1000);
}
