//! Cancelling by `cancellationId`.
use super::*;
use tool_reliability::idempotency::RecordState;
use tr_core::{Ran, Verdict, call::CallContext};
use tr_testkit::calls::{answers, fails};

fn session(name: &str) -> CallContext {
    let mut context = CallContext::default();
    context.session = Some(name.into());
    context
}

/// A call of session `s` that can be cancelled as `stop`.
fn request(tool: &str, more: &Value) -> EnvelopeRequest {
    let mut members = json!({"cancellationId": "stop"});
    members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    EnvelopeRequest::from(utee(tool, members)).on_behalf_of(session("s"))
}

impl Bench {
    fn cancel(&self, of: &str, id: &str) -> usize {
        self.tools.canceller().cancel(&session(of), id)
    }

    fn states(&self) -> Vec<RecordState> {
        self.stack.records().records().iter().map(|record| record.state).collect()
    }

    fn running(&self) -> usize {
        self.tools.canceller().running()
    }

    /// Until no task has anything left to do.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ut_09_a_running_call_is_cancelled_by_its_id() {
    let bench = Bench::new([Step::Hang]);
    let cancel = async {
        tokio::time::sleep(seconds(2)).await;
        assert_eq!(bench.cancel("s", "other"), 0);
        assert_eq!(bench.cancel("t", "stop"), 0, "another session's ids are other ids");
        assert_eq!((bench.handle.in_flight(), bench.running()), (1, 1));
        assert_eq!(bench.cancel("s", "stop"), 1);
    };
    let (said, ()) = tokio::join!(bench.ask(request("pay", &json!({}))), cancel);
    assert_eq!(
        (&said["error"]["code"], &said["error"]["ran"]),
        (&json!("cancelled"), &json!("unknown"))
    );
    assert_eq!((&said["durationMs"], &said["attempts"]), (&json!(2000), &json!(1)));
    assert_eq!((bench.handle.in_flight(), bench.handle.cancelled(), bench.running()), (0, 1, 0));
    // One that comes later is another call.
    assert_eq!(bench.cancel("s", "stop"), 0);
}

#[tokio::test(start_paused = true)]
async fn ut_09_cancelling_reaches_the_run_of_a_keyed_call_and_its_record() {
    let bench = Bench::new([Step::Hang]);
    let keyed = || request("pay", &json!({"idempotencyKey": "k", "timeout": 60000}));
    let cancel = async {
        tokio::time::sleep(seconds(2)).await;
        assert_eq!(bench.cancel("s", "stop"), 1);
    };
    let (said, ()) = tokio::join!(bench.ask(keyed()), cancel);
    assert_eq!(
        (&said["error"]["code"], &said["error"]["ran"]),
        (&json!("cancelled"), &json!("unknown"))
    );
    assert_eq!((bench.states(), bench.handle.cancelled()), (vec![RecordState::Unknown], 1));
    // It may have run, so it is not run again.
    assert_eq!(bench.ask(keyed()).await["error"]["code"], "outcome_unknown");
    assert_eq!((bench.handle.calls(), bench.running()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn ut_09_it_reaches_a_run_whose_caller_is_gone() {
    let bench = Bench::forgetful([Step::Hang]);
    let keyed = request("pay", &json!({"idempotencyKey": "k", "timeout": 60000}));
    let gone = tokio::time::timeout(seconds(1), bench.answer(keyed)).await;
    assert!(gone.is_err(), "its caller gave up");
    assert_eq!((bench.handle.in_flight(), bench.running()), (1, 1), "and it runs on");
    assert_eq!(bench.cancel("s", "stop"), 1);
    bench.settle().await;
    assert_eq!((bench.handle.in_flight(), bench.running()), (0, 0));
    assert_eq!(bench.states(), [RecordState::Unknown]);
}

#[tokio::test(start_paused = true)]
async fn ut_09_who_only_waits_cancels_only_the_waiting() {
    let bench = Bench::new([Step::after(seconds(5), answers("paid"))]);
    let keyed = |stop: &str| {
        let said = utee("pay", json!({"idempotencyKey": "k", "cancellationId": stop}));
        EnvelopeRequest::from(said).on_behalf_of(session("s"))
    };
    let cancel = async {
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(bench.cancel("s", "second"), 1);
    };
    let (first, second, ()) =
        tokio::join!(bench.ask(keyed("first")), bench.ask(keyed("second")), cancel);
    assert_eq!((&first["result"], &first["durationMs"]), (&json!("paid"), &json!(5000)));
    assert_eq!(
        (&second["error"]["code"], &second["durationMs"]),
        (&json!("cancelled"), &json!(1000))
    );
    // Another caller's run of its key goes on.
    assert_eq!(second["error"]["ran"], "unknown");
    assert_eq!((bench.handle.calls(), bench.running()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn between_two_attempts_nothing_is_in_doubt() {
    let retry_after = Some(seconds(20));
    let bench = Bench::new([fails("http_429", Verdict::Transient { retry_after }, Ran::No)]);
    let cancel = async {
        tokio::time::sleep(seconds(2)).await;
        assert_eq!(bench.cancel("s", "stop"), 1);
    };
    let keyed = request("pay", &json!({"idempotencyKey": "k"}));
    let (said, ()) = tokio::join!(bench.ask(keyed), cancel);
    assert_eq!(
        (&said["error"]["code"], &said["error"]["ran"]),
        (&json!("cancelled"), &json!("no"))
    );
    assert_eq!((bench.states(), bench.handle.calls()), (vec![RecordState::Cancelled], 1));
}

/// Cancelled while its tool is not ready, it has not run, and never will.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_tool_is_cancelled_too() {
    let tool = ScriptedTool::script([answers("ok")]).capacity(0);
    let handle = tool.handle();
    let tools = Envelopes::new(ToolStack::default().service(tool));
    let canceller = tools.canceller();
    let cancel = async {
        tokio::time::sleep(seconds(2)).await;
        assert_eq!(canceller.cancel(&session("s"), "stop"), 1);
    };
    let asked = tools.oneshot(request("pay", &json!({})));
    let (Ok(answer), ()) = tokio::join!(asked, cancel);
    let said: Value = answer.to_json().parse().unwrap();
    assert_eq!((&said["error"]["code"], &said["durationMs"]), (&json!("cancelled"), &json!(2000)));
    assert_eq!((handle.calls(), canceller.running()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn several_calls_with_one_id_are_cancelled_together() {
    let bench = Bench::new([Step::Hang]);
    let cancel = async {
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(bench.cancel("s", "stop"), 2);
    };
    let (one, two, ()) = tokio::join!(
        bench.ask(request("pay", &json!({}))),
        bench.ask(request("other", &json!({}))),
        cancel,
    );
    assert_eq!(
        (&one["error"]["code"], &two["error"]["code"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_bound_can_be_cancelled_at_a_time() {
    let bench = Bench::new([Step::after(seconds(1), answers("ok"))]);
    let layer = EnvelopesLayer::builder().max_cancellable(1).build().unwrap();
    let tool = ScriptedTool::script([Step::after(seconds(1), answers("ok"))]).then_repeat_last();
    let handle = tool.handle();
    let tools = layer.layer(bench.stack.service(tool));
    let ask = async |request: EnvelopeRequest| {
        let Ok(answer) = tools.clone().oneshot(request).await;
        answer.to_json().parse::<Value>().unwrap()
    };
    let plain = utee("pay", json!({}));
    let (first, second, third) = tokio::join!(
        ask(request("pay", &json!({}))),
        ask(request("pay", &json!({}))),
        ask(plain.into()),
    );
    assert_eq!((&first["status"], &third["status"]), (&json!("success"), &json!("success")));
    let error = &second["error"];
    assert_eq!(
        (&error["code"], &error["ran"], &error["retryable"]),
        (&json!("overloaded"), &json!("no"), &json!(true))
    );
    assert_eq!((handle.calls(), layer.canceller().running()), (2, 0));
}

/// Wherever it is dropped, no entry stays once nothing runs any more.
#[tokio::test(start_paused = true)]
async fn an_entry_goes_with_its_call_at_every_await() {
    let slow = |step| Step::after(Duration::from_millis(300), step);
    let down = || slow(fails("http_503", Verdict::TRANSIENT, Ran::Unknown));
    for cut in (0..40).map(|cut| Duration::from_millis(25 * cut)) {
        for keyed in [json!({}), json!({"idempotencyKey": "k"})] {
            let bench = Bench::forgetful([down(), slow(answers("ok"))]);
            let asked = bench.answer(request("read", &keyed));
            let answered = tokio::time::timeout(cut, asked).await.is_ok();
            assert!(!answered || bench.running() == 0, "cut after {cut:?}");
            tokio::time::sleep(seconds(60)).await;
            assert_eq!((bench.running(), bench.handle.in_flight()), (0, 0), "cut after {cut:?}");
        }
        // Nothing runs on where there is no stack.
        let tool = ScriptedTool::script([slow(answers("ok"))]).unlogged();
        let tools = Envelopes::new(tool);
        let canceller = tools.canceller();
        drop(tokio::time::timeout(cut, tools.oneshot(request("read", &json!({})))).await);
        assert_eq!(canceller.running(), 0, "cut after {cut:?}");
    }
}
