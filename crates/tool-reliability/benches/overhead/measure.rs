//! UTEE's experiment: overhead in percentiles, log volume, accuracy of classification.
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    fmt, fs, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tool_reliability::{ToolStack, retry::RetryConfig, telemetry::JsonLines};
use tower::{Service, ServiceExt, service_fn};
use tr_core::{BoxError, Effect, FailureInfo, Json, Params, Ran, ToolCall, ToolOutcome, causes};
use tracing_subscriber::prelude::*;

/// What the draft asks for.
pub(crate) const TARGET: Duration = Duration::from_millis(5);

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) calls: usize,
    /// What the stack adds to a call, at the 50th, 95th and 99th percentile.
    pub(crate) overhead: [Duration; 3],
    pub(crate) log_lines: usize,
    pub(crate) log_bytes: usize,
    /// Labelled errors, and those of them that were classified as labelled.
    pub(crate) errors: usize,
    pub(crate) right: usize,
}

impl Report {
    /// Whether the draft's criteria are met, and no error is misjudged.
    pub(crate) fn is_ok(&self) -> bool {
        self.overhead[1] < TARGET && self.right == self.errors && self.errors >= 50
    }

    pub(crate) fn to_json(&self) -> Value {
        let micros = self.overhead.map(|overhead| overhead.as_nanos() as f64 / 1e3);
        json!({
            "calls": self.calls,
            "overheadMicros": { "p50": micros[0], "p95": micros[1], "p99": micros[2] },
            "targetP95Micros": TARGET.as_micros() as u64,
            "log": {
                "linesPerCall": self.log_lines as f64 / self.calls as f64,
                "bytesPerCall": self.log_bytes as f64 / self.calls as f64,
            },
            "classification": { "errors": self.errors, "right": self.right },
            "ok": self.is_ok(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p95, p99] = self.overhead;
        writeln!(f, "overhead of a guarded call  p50 {p50:.1?}  p95 {p95:.1?}  p99 {p99:.1?}")?;
        let per_call = |count: usize| count as f64 / self.calls as f64;
        let (lines, bytes) = (per_call(self.log_lines), per_call(self.log_bytes));
        writeln!(f, "log                         {lines:.1} lines, {bytes:.0} bytes a call")?;
        writeln!(f, "errors classified rightly   {} of {}", self.right, self.errors)
    }
}

/// The smallest value that so many percent of the sorted values do not exceed.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Measures by `clock`, which only has to grow.
pub(crate) async fn measure(calls: usize, clock: impl Fn() -> Duration) -> Report {
    let log = Counting::default();
    let lines = tracing_subscriber::registry().with(JsonLines::new(log.clone()));
    let overhead = {
        let _guard = tracing::subscriber::set_default(lines);
        overheads(calls, clock).await
    };
    let (errors, right) = accuracy().await;
    Report {
        calls,
        overhead: [50, 95, 99].map(|percent| percentile(&overhead, percent)),
        log_lines: log.lines.load(Relaxed),
        log_bytes: log.bytes.load(Relaxed),
        errors,
        right,
    }
}

/// What the stack adds to each call of a tool that answers at once, sorted. Bare and guarded calls
/// take turns, so that whatever slows the machine slows both.
async fn overheads(calls: usize, clock: impl Fn() -> Duration) -> Vec<Duration> {
    let mut bare = service_fn(async |call: ToolCall| {
        Ok::<_, BoxError>(ToolOutcome::success(call.parts().params.clone()))
    });
    let stack = ToolStack::default();
    let mut guarded = stack.service(bare);
    let params = Params::from_text(
        r#"{"command": "git status", "cwd": "/srv/repository", "env": {"LANG": "C"}, "timeoutMs": 30000}"#,
    );
    let params: Json = params.expect("JSON");
    let mut overheads = Vec::with_capacity(calls);
    for n in 0..calls {
        let call = ToolCall::new("exec", params.clone())
            .effect(Effect::Mutating)
            .session("session")
            .request_id(format!("request-{n}"))
            .idempotency_key(format!("key-{n}"));
        let began = clock();
        bare.ready().await.expect("ready").call(call.clone()).await.expect("answers");
        let between = clock();
        guarded.ready().await.expect("ready").call(call).await.expect("answers");
        let ended = clock();
        overheads.push((ended - between).saturating_sub(between - began));
    }
    overheads.sort_unstable();
    overheads
}

/// An error with its expected label.
#[derive(Deserialize)]
struct Labelled {
    via: String,
    text: String,
    verdict: String,
    ran: Ran,
}

/// How many labelled errors there are, and how many a stack around a tool that fails with their
/// text judges as labelled.
async fn accuracy() -> (usize, usize) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tr-core/tests/data/errors/corpus.jsonl");
    let corpus = fs::read_to_string(path).expect("the labelled corpus");
    let labelled = corpus.lines().map(|line| serde_json::from_str::<Labelled>(line).expect(line));
    let mut config = RetryConfig::default();
    config.attempts = 1;
    let stack = ToolStack::builder().retry(|retry| retry.config(config)).build().expect("valid");
    let (mut errors, mut right) = (0, 0);
    for case in labelled.filter(|case| case.via == "message") {
        let text = case.text.clone();
        let tool = service_fn(move |_: ToolCall| {
            let text = text.clone();
            async move { Err::<ToolOutcome, _>(BoxError::from(text)) }
        });
        // A tool and a session for each, so that no breaker opens and no turn ends.
        let call = ToolCall::new(&*format!("tool-{errors}"), Params::empty_object())
            .session(format!("session-{errors}"));
        let error = stack.service(tool).oneshot(call).await.expect_err("it fails");
        let facts = causes(&*error).filter_map(|cause| cause.downcast_ref::<FailureInfo>()).last();
        let found = facts.map(|facts| (facts.verdict().as_str(), facts.ran()));
        errors += 1;
        right += usize::from(found == Some((&*case.verdict, case.ran)));
    }
    (errors, right)
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
