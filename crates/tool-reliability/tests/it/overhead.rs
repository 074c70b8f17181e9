//! What the stack adds to a call, and how much it logs.
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tool_reliability::{ToolStack, telemetry::JsonLines};
use tower::service_fn;
use tr_core::{BoxError, Effect, Json, Params, ToolCall, ToolOutcome};
use tr_testkit::{logs::Logs, overhead::Plan};
use tracing_subscriber::{prelude::*, registry};

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
    let (_, _listening) = Logs::listen(|_| registry().with(JsonLines::new(log.clone())));
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
