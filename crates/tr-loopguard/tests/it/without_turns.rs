//! Calls that name no turn, as those of most clients of MCP: only what fails by its args alone is refused.
use std::{sync::Arc, time::Duration};
use tokio::time::advance;
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{
    BoxError, Json, Params, Ran, ToolCall, ToolError, ToolOutcome, Verdict, manifest::InputSchema,
};
use tr_loopguard::{
    Builder, LoopDetected, LoopGuard, LoopGuardLayer, Mode, Signals, loop_detected, tool_errors,
};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails, reports},
    tool::{Handle, Step},
};

type Guard = LoopGuard<ScriptedTool>;

fn guard(
    builder: Builder,
    script: impl IntoIterator<Item = Step<ToolOutcome>>,
) -> (Guard, Handle<ToolCall>) {
    let tool = ScriptedTool::script(script).then_repeat_last();
    let handle = tool.handle();
    (builder.build().unwrap().layer(tool), handle)
}

/// The forms of the mode `block`: without signals, as in the library, and with them, as in a configuration
/// and in `tool-guard mcp`.
fn blocking() -> [Builder; 3] {
    [None, Some(true), Some(false)].map(|refuse| {
        let signals = refuse.map(|refuse| Signals::default().refuse(refuse));
        LoopGuardLayer::builder().signals(signals)
    })
}

fn call(tool: &str, params: &str) -> ToolCall {
    ToolCall::new(tool, Params::from_text(params).unwrap()).session("s")
}

/// The added notes; `None` if the call was refused.
async fn noted(guard: &Guard, call: ToolCall) -> Option<Vec<String>> {
    let notes =
        |outcome: ToolOutcome| outcome.parts().notes.iter().map(|it| (**it).into()).collect();
    match guard.clone().oneshot(call).await {
        Ok(outcome) => Some(notes(outcome)),
        Err(error) if error.is::<LoopDetected>() => None,
        Err(error) => Some(vec![error.to_string()]),
    }
}

async fn notes(guard: &Guard, call: ToolCall) -> Vec<String> {
    noted(guard, call).await.unwrap()
}

fn repeated(tool: &str, failures: u32) -> String {
    loop_detected(tool, failures).replace(
        "This is a non-retryable error. Do NOT retry this call.",
        "Do not repeat this call before something has changed.",
    )
}

/// Most clients of MCP name no turn: five failures of whatever kind must not end the session.
#[tokio::test(start_paused = true)]
async fn without_a_turn_the_limit_of_failures_warns_and_refuses_nothing() {
    let words = ["no a", "no b", "no c", "no d", "no e", "no f"];
    for unnamed in [
        ToolCall::new("t", Params::empty_object()),
        ToolCall::new("t", Params::empty_object()).session("s"),
    ] {
        let script = words.map(|text| reports("e", text));
        let script = script.into_iter().chain([
            answers("fine"),
            reports("e", "no a"),
            reports("e", "no a"),
            answers("fine"),
        ]);
        let (guard, tool) = guard(LoopGuardLayer::builder(), script);
        let call = |tool: &str| {
            let mut call = unnamed.clone();
            call.parts_mut().tool = tool.into();
            call
        };
        for n in 1..=6 {
            let expected =
                if n < 5 { vec![] } else { vec![tool_errors(n, Some(Duration::from_secs(60)))] };
            assert_eq!(notes(&guard, call(&format!("tool{n}"))).await, expected);
        }
        // Nothing else is refused, and successes are not touched.
        assert!(notes(&guard, call("tool1")).await.is_empty());
        // Its success has ended its count, and that of no other.
        advance(Duration::from_secs(59)).await;
        let expected = tool_errors(6, Some(Duration::from_secs(60)));
        assert_eq!(notes(&guard, call("tool1")).await, [expected]);
        // Now the first six have expired.
        advance(Duration::from_secs(1)).await;
        assert_eq!(notes(&guard, call("tool1")).await, [repeated("tool1", 2)]);
        assert!(notes(&guard, call("tool1")).await.is_empty());
        assert_eq!(tool.calls(), 10);
    }
}

/// A server that is down, a poll that fails until it is ready, a test that fails until its code is mended by
/// a tool that the guard does not see.
#[tokio::test(start_paused = true)]
async fn what_may_change_with_the_world_gets_a_note_and_runs() {
    for (text, builder) in [
        "not ready yet",
        "tests failed",
        "connect ECONNREFUSED 127.0.0.1:5432",
        "Service unavailable (503)",
        "TypeError: fetch failed",
        "Invalid value in config.toml",
        "> npm test\n\n1 failed\nTypeError: f() missing 1 required positional argument: 'x'",
    ]
    .into_iter()
    .flat_map(|text| blocking().map(|builder| (text, builder)))
    {
        let script = (0..14).map(|_| reports("e", text)).chain([answers("done")]);
        let (guard, tool) = guard(builder, script);
        for n in 1..=14 {
            let notes = notes(&guard, call("t", "{}")).await;
            assert_eq!(notes.contains(&repeated("t", n)), n > 1, "{text} {n}: {notes:?}");
            let warning = tool_errors(n, Some(Duration::from_secs(60)));
            assert_eq!(notes.contains(&warning), n >= 5, "{text} {n}: {notes:?}");
        }
        assert!(notes(&guard, call("t", "{}")).await.is_empty());
        assert_eq!(tool.calls(), 15);
    }
    // Nor an error in place of an answer.
    for builder in blocking() {
        let (guard, tool) = guard(builder, [fails("timeout", Verdict::TRANSIENT, Ran::Unknown)]);
        for n in 1..=14 {
            let notes = notes(&guard, call("t", "{}")).await;
            assert_eq!(notes[0].contains(&repeated("t", n)), n > 1, "{notes:?}");
        }
        assert_eq!(tool.calls(), 14);
    }
}

#[tokio::test(start_paused = true)]
async fn neither_cycles_nor_one_error_under_many_args_are_refused() {
    for builder in blocking() {
        let (guard, tool) = guard(builder, [reports("e", "nothing there")]);
        for n in 0..40 {
            notes(&guard, call(["a", "b"][n % 2], "{}")).await;
        }
        for n in 0..40 {
            notes(&guard, call("find", &format!("{{\"n\":{n}}}"))).await;
        }
        assert_eq!(tool.calls(), 80);
    }
}

#[tokio::test(start_paused = true)]
async fn a_test_run_that_improves_is_not_identical() {
    for builder in blocking() {
        let script = [4, 3, 2].map(|n| reports("e", &format!("FAILED {n} tests in 0.{n}s")));
        let (guard, tool) = guard(builder, script);
        for _ in 0..3 {
            assert!(notes(&guard, call("test", "{}")).await.is_empty());
        }
        assert_eq!(notes(&guard, call("test", "{}")).await, [repeated("test", 2)]);
        assert_eq!(tool.calls(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_by_its_args_alone_is_refused_until_the_failures_expire() {
    let own = ToolError::new("-32602", "no");
    let mut came = ToolError::new("invalid_input", "no");
    came.details = Some(Json::from_text(r#"{"code":-32602,"message":"no"}"#).unwrap());
    let texts = [
        "Missing required parameter: path",
        "Expected string but received number",
        "MCP error -32602: Input validation error: Invalid arguments for tool read",
        "1 validation error for readArguments\npath\n  Field required [type=missing]",
    ];
    let errors =
        texts.map(|text| ToolError::new("tool_error", text)).into_iter().chain([own, came]);
    for (error, builder) in errors.flat_map(|error| blocking().map(|it| (error.clone(), it))) {
        let (guard, tool) = guard(builder, [Step::Ok(ToolOutcome::failure(error))]);
        notes(&guard, call("read", "{}")).await;
        assert!(notes(&guard, call("read", "{}")).await.contains(&loop_detected("read", 2)));
        assert_eq!(noted(&guard, call("read", "{}")).await, None);
        notes(&guard, call("read", "[]")).await;
        advance(Duration::from_secs(60)).await;
        notes(&guard, call("read", "{}")).await;
        assert_eq!(tool.calls(), 4);
    }
}

/// Also where the text is none of the patterns.
#[tokio::test(start_paused = true)]
async fn a_call_that_fails_its_schema_is_refused() {
    let schema = Json::from_text(r#"{"properties":{"n":{"minimum":1}}}"#).unwrap();
    let schema = Arc::new(InputSchema::compile(&schema).unwrap());
    let checked = service_fn(move |call: ToolCall| {
        let checked = schema.check(&call.parts().params).map(|()| ToolOutcome::default());
        std::future::ready(checked.map_err(BoxError::from))
    });
    let guard = LoopGuardLayer::default().layer(checked);
    for n in 1..=3 {
        let error = guard.clone().oneshot(call("t", r#"{"n":0}"#)).await.unwrap_err();
        assert_eq!(error.is::<LoopDetected>(), n == 3, "{error}");
    }
}

/// With a turn, and in the mode `strict`, whatever fails twice is not called a third time.
#[tokio::test(start_paused = true)]
async fn with_a_turn_and_in_strict_mode_every_identical_failure_is_refused() {
    for (mode, turn) in [(Mode::Block, Some("t")), (Mode::Strict, None), (Mode::Strict, Some("t"))]
    {
        let builder = LoopGuardLayer::builder().mode(mode);
        let (guard, tool) = guard(builder, [reports("e", "not ready yet")]);
        let status = || turn.map_or(call("status", "{}"), |turn| call("status", "{}").turn(turn));
        assert!(notes(&guard, status()).await.is_empty());
        assert_eq!(notes(&guard, status()).await, [loop_detected("status", 2)]);
        assert_eq!(noted(&guard, status()).await, None);
        assert_eq!(tool.calls(), 2);
    }
}
