//! What answers say, whatever the end.
use super::*;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tool_reliability::{Mode, Rollout, telemetry::Signals};
use tr_core::{Json, Ran, Verdict};
use tr_testkit::calls::{answers, fails, reports};

fn gives(text: &str) -> Step<ToolOutcome> {
    Step::Ok(ToolOutcome::success(Json::from_text(text).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn ut_01_every_end_has_its_envelope_in_both_forms() {
    let down = || fails("http_503", Verdict::TRANSIENT, Ran::Unknown);
    for (tool, script, status, code, attempts) in [
        ("read", vec![answers("ok")], "success", "", 1),
        ("read", vec![down(), answers("ok")], "success", "", 2),
        ("read", vec![down()], "retry_exhausted", "retry_exhausted", 4),
        ("pay", vec![down()], "error", "http_503", 1),
        ("pay", vec![reports("declined", "card declined")], "error", "declined", 1),
    ] {
        for form in ["utee", "bs_tim_5"] {
            let bench = Bench::new(script.clone());
            let request =
                if form == "utee" { utee(tool, json!({})) } else { bs_tim_5(tool, &json!({})) };
            let said = bench.ask(request).await;
            assert_eq!(
                (&said["requestId"], &said["attempts"]),
                (&json!("r"), &json!(attempts)),
                "{said}"
            );
            assert_eq!(said["fromCache"], false);
            assert_eq!(said["error"]["code"].as_str().unwrap_or_default(), code, "{said}");
            let plain = if status == "success" { status } else { "error" };
            assert_eq!(said["status"], if form == "utee" { plain } else { status }, "{said}");
            assert_eq!(
                said["durationMs"].as_f64().unwrap() > 0.0,
                attempts > 1,
                "the delays count"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tr_03_a_repeat_is_answered_from_the_record_and_says_so() {
    let bench = Bench::new([answers("paid")]);
    for (attempts, from_cache) in [(1, false), (0, true)] {
        let said = bench.ask(utee("pay", json!({"idempotencyKey": "k"}))).await;
        assert_eq!((&said["attempts"], &said["fromCache"]), (&json!(attempts), &json!(from_cache)));
        assert_eq!((&said["status"], &said["result"]), (&json!("success"), &json!("paid")));
    }
    let keyed = bs_tim_5("pay", &json!({"_utee": {"idempotencyKey": "k"}}));
    assert_eq!(bench.ask(keyed.clone()).await["fromCache"], false, "another session");
    let said = bench.ask(keyed).await;
    assert_eq!(
        (&said["fromCache"], &said["cache"]["matchedOn"]),
        (&json!(true), &json!("completed"))
    );
    assert_eq!(bench.handle.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn ut_08_answers_name_their_span_and_those_inside() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let signals = Signals::builder().tracer(provider.tracer("test")).build().unwrap();
    let stack = ToolStack::builder().telemetry(signals).build().unwrap();
    let bench = Bench::of(stack, [answers("ok")]);
    for request in [utee("read", json!({})), bs_tim_5("read", &json!({}))] {
        exporter.reset();
        let said = bench.ask(request).await;
        let spans = exporter.get_finished_spans().unwrap();
        let id = |name: &str| {
            let span = spans.iter().find(|span| span.name == name).unwrap();
            span.span_context.span_id().to_string()
        };
        assert_eq!(said["spanId"], id("tool_execution"), "{said}");
        assert_eq!(said["emittedSpans"], json!([id("tool_attempt")]));
    }
}

/// Recognized by what its form requires; whatever the stack is, and with records and without.
#[tokio::test(start_paused = true)]
async fn ut_04_an_answer_that_is_an_envelope_is_not_wrapped_twice() {
    let utee_answer = r#"{"requestId":"x","status":"success","result":{"n":1},"durationMs":5}"#;
    let bs_answer = r#"{"requestId":"x","status":"success","fromCache":false,"toolName":"t",
        "durationMs":5,"attempts":1,"output":{"content":{"n":1}}}"#;
    let failure = r#"{"requestId":"x","status":"error","durationMs":5,
        "error":{"code":"busy","message":"later","retryable":false,"ran":"no"}}"#;
    let stacks: [fn() -> tool_reliability::Builder; 4] = [
        ToolStack::builder,
        || ToolStack::builder().rollout(Rollout::new(Mode::Off)),
        || ToolStack::builder().normalise(false),
        || ToolStack::builder().silent_failures(false),
    ];
    for stack in stacks {
        for given in [utee_answer, bs_answer] {
            let bench = Bench::of(stack().build().unwrap(), [gives(given)]);
            for _ in 0..2 {
                let said = bench.ask(utee("pay", json!({"idempotencyKey": "k"}))).await;
                assert_eq!((&said["requestId"], &said["result"]), (&json!("r"), &json!({"n": 1})));
                let said = bench.ask(bs_tim_5("pay", &json!({}))).await;
                assert_eq!(
                    (&said["requestId"], &said["output"]["content"]),
                    (&json!("r"), &json!({"n": 1}))
                );
            }
        }
        let bench = Bench::of(stack().build().unwrap(), [gives(failure)]);
        let said = bench.ask(utee("pay", json!({}))).await;
        assert_eq!((&said["error"]["code"], &said["error"]["ran"]), (&json!("busy"), &json!("no")));
    }
    // What was inside of one is the tool's own.
    let nested =
        format!(r#"{{"requestId":"x","status":"success","result":{failure},"durationMs":5}}"#);
    let bench = Bench::new([gives(&nested)]);
    for _ in 0..2 {
        let said = bench.ask(utee("pay", json!({"idempotencyKey": "k"}))).await;
        assert_eq!(
            (&said["status"], &said["result"]["requestId"]),
            (&json!("success"), &json!("x"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ut_04_a_look_alike_is_wrapped() {
    for given in [
        r#"{"requestId":"aws-1","status":"success","data":1}"#,
        r#"{"requestId":"x","status":"running","result":1,"durationMs":5}"#,
        r#"{"status":"success","result":1}"#,
    ] {
        let said = Bench::new([gives(given)]).ask(utee("pay", json!({}))).await;
        assert_eq!(said["result"], serde_json::from_str::<Value>(given).unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn ut_03_silent_failures_are_failures() {
    let said = Bench::new([gives(r#"{"exitCode":1,"stderr":"no such file"}"#)])
        .ask(utee("pay", json!({})))
        .await;
    assert_eq!(
        (&said["status"], &said["error"]["code"]),
        (&json!("error"), &json!("nonzero_exit"))
    );
    assert_eq!(said["error"]["ran"], "yes");
}

#[tokio::test(start_paused = true)]
async fn tr_08_an_open_breaker_answers_at_once_with_its_state() {
    let bench = Bench::new([fails("http_503", Verdict::TRANSIENT, Ran::Unknown)]);
    for n in 0..5 {
        bench.ask(bs_tim_5("pay", &json!({ "n": n }))).await;
    }
    let said = bench.ask(bs_tim_5("pay", &json!({"n": 9}))).await;
    assert_eq!(
        (&said["status"], &said["error"]["breakerState"]),
        (&json!("circuit_open"), &json!("OPEN"))
    );
    assert_eq!((&said["attempts"], &said["durationMs"]), (&json!(0), &json!(0)));
    assert_eq!((&said["error"]["ran"], bench.handle.calls()), (&json!("no"), 5));
}
