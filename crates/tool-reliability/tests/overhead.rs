//! What the stack adds to a call, how much it logs, and how often errors are classified rightly.
use serde::Deserialize;
use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tool_reliability::{ToolStack, retry::RetryConfig, telemetry::JsonLines};
use tower::{ServiceExt, service_fn};
use tr_core::{BoxError, Effect, FailureInfo, Json, Params, Ran, ToolCall, ToolOutcome, causes};
use tr_testkit::overhead::Plan;
use tracing_subscriber::prelude::*;

/// The processor's time of this thread: other programs do not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Counts what is logged.
#[derive(Clone, Default)]
struct Counting {
    lines: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
}

impl io::Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.fetch_add(bytes.iter().filter(|byte| **byte == b'\n').count(), Relaxed);
        self.bytes.fetch_add(bytes.len(), Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn ut_11_the_stack_adds_less_than_five_milliseconds_and_logs_two_lines() {
    let log = Counting::default();
    let lines = tracing_subscriber::registry().with(JsonLines::new(log.clone()));
    let _guard = tracing::subscriber::set_default(lines);
    let bare = service_fn(async |call: ToolCall| {
        Ok::<_, BoxError>(ToolOutcome::success(call.parts().params.clone()))
    });
    let params = Params::from_text(r#"{"command": "git status", "timeoutMs": 30000}"#);
    let params: Json = params.unwrap();
    let request = |n| {
        ToolCall::new("exec", params.clone())
            .effect(Effect::Mutating)
            .session("session")
            .request_id(format!("request-{n}"))
            .idempotency_key(format!("key-{n}"))
    };
    let plan = Plan::new().rounds(500).calls(1).clock(processor_time);
    let overhead = plan.measure(bare, ToolStack::default().service(bare), request).await.unwrap();
    let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| overhead.added.percentile(percent));
    assert!(0.0 < p50 && p50 <= p95 && p95 <= p99, "{overhead}");
    assert!(p95 < 5e6, "{overhead}");
    // One line when a call begins, one when it ends, and nothing of the bare calls; one call more filled the caches.
    let calls = 501;
    assert_eq!(log.lines.load(Relaxed), 2 * calls);
    let bytes = log.bytes.load(Relaxed) / calls;
    assert!((200..2_000).contains(&bytes), "{bytes} bytes a call");
}

/// An error with its expected label.
#[derive(Deserialize)]
struct Labelled {
    via: String,
    text: String,
    verdict: String,
    ran: Ran,
}

/// A stack around a tool that fails with the text of a labelled error classifies it as labelled.
#[tokio::test]
async fn ut_11_every_labelled_error_is_classified_rightly() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tr-core/tests/data/errors/corpus.jsonl");
    let corpus = fs::read_to_string(path).unwrap();
    let labelled = corpus.lines().map(|line| serde_json::from_str::<Labelled>(line).expect(line));
    let mut config = RetryConfig::default();
    config.attempts = 1;
    let stack = ToolStack::builder().retry(|retry| retry.config(config)).build().unwrap();
    let mut errors = 0;
    for case in labelled.filter(|case| case.via == "message") {
        let text = case.text.clone();
        let tool = service_fn(move |_: ToolCall| {
            let text = text.clone();
            async move { Err::<ToolOutcome, _>(BoxError::from(text)) }
        });
        // A tool and a session for each, so that no breaker opens and no turn ends.
        let call = ToolCall::new(&*format!("tool-{errors}"), Params::empty_object())
            .session(format!("session-{errors}"));
        let error = stack.service(tool).oneshot(call).await.unwrap_err();
        let facts = causes(&*error).filter_map(|cause| cause.downcast_ref::<FailureInfo>()).last();
        let found = facts.map(|facts| (facts.verdict().as_str(), facts.ran()));
        assert_eq!(found, Some((&*case.verdict, case.ran)), "{}", case.text);
        errors += 1;
    }
    assert!(errors >= 120, "{errors} errors");
}
