//! A long stream through everything: its memory is counted.
use crate::metered::Metered;
use futures_util::{StreamExt, stream};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tool_reliability::{
    Streaming, ToolStack,
    idempotency::sqlite::Sqlite,
    streaming::{ChunkLimits, stream_fn},
    telemetry::{JsonLines, Signals},
};
use tr_core::{BoxError, Effect, Json, Params, ToolCall};
use tr_testkit::{alloc, logs::Logs};
use tracing_subscriber::{prelude::*, registry};

fn chunk(n: u64) -> String {
    format!(r#"{{"n" : {n}, "text": "{}"}}"#, "x".repeat((n % 97) as usize))
}

fn call(key: &str) -> ToolCall {
    ToolCall::new("tail", Params::empty_object())
        .effect(Effect::Mutating)
        .session("s")
        .turn("t")
        .idempotency_key(key)
}

/// A stack with records in a file, spans, metrics and logs, around a tool of so many chunks.
struct Scene {
    stack: ToolStack,
    made: Arc<AtomicU64>,
    metered: Metered,
    exporter: InMemorySpanExporter,
    _folder: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(folder.path().join("records.db")).await.unwrap();
        let (metered, exporter) = (Metered::new(), InMemorySpanExporter::default());
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let signals = Signals::builder().meter(metered.meter()).tracer(provider.tracer("test"));
        let stack = ToolStack::builder()
            .telemetry(signals.build().unwrap())
            .idempotency(|it| it.store(store))
            .build()
            .unwrap();
        Self { stack, made: Arc::default(), metered, exporter, _folder: folder }
    }

    /// Reads the stream of a call, and compares each chunk with what the tool sent.
    async fn read(&self, key: &str, chunks: u64, kept_bytes: usize) -> Read {
        let counted = self.made.clone();
        let tool = stream_fn(move |_: ToolCall| {
            let made = counted.clone();
            stream::iter(0..chunks).map(move |n| {
                made.fetch_add(1, Ordering::Relaxed);
                Ok::<_, BoxError>(Json::from_text(chunk(n)).unwrap())
            })
        });
        let mut limits = ChunkLimits::default();
        limits.kept_bytes = kept_bytes;
        let tool = Streaming::new(self.stack.service(tool)).limits(limits);
        let before = self.made.load(Ordering::Relaxed);
        let mut read = Read { chunks: 0, most_ahead: 0, replayed: 0, recorded: true };
        let mut answer = pin!(tool.stream(call(key)));
        while let Some(outcome) = answer.next().await {
            let at = outcome.parts().chunk.unwrap();
            assert_eq!((at.index, at.last), (read.chunks, read.chunks == chunks));
            if at.last {
                assert!(outcome.error().is_none() && outcome.content().is_none(), "{outcome:?}");
                read.recorded = outcome.recorded();
                continue;
            }
            assert_eq!(outcome.content().unwrap().get(), chunk(at.index));
            read.chunks += 1;
            read.replayed += u64::from(outcome.from_cache());
            let ahead = (self.made.load(Ordering::Relaxed) - before).saturating_sub(read.chunks);
            read.most_ahead = read.most_ahead.max(ahead);
        }
        read
    }
}

/// How a stream came.
struct Read {
    chunks: u64,
    /// How many chunks the tool had made and the consumer had not read.
    most_ahead: u64,
    replayed: u64,
    recorded: bool,
}

#[test]
fn ut_07_ten_thousand_chunks_through_everything() {
    const MANY: u64 = 10_000;
    const KEPT: usize = 1 << 20;
    let (logs, _guard) = Logs::listen(|logs| registry().with(JsonLines::new(logs)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scene = runtime.block_on(Scene::new());
    let read =
        |key: &str, chunks, kept| alloc::peak(|| runtime.block_on(scene.read(key, chunks, kept)));
    // What is needed once is there.
    read("warm", 10, KEPT);

    // Nothing is kept of a long one, so it takes no more than a short one.
    let (_, short) = read("short", 100, 1_000);
    let (long, most) = read("long", MANY, 1_000);
    assert!(most < short + 10_000, "{most} bytes for {MANY} chunks, {short} for 100");
    assert_eq!((long.chunks, long.recorded), (MANY, false));
    assert!(long.most_ahead <= 16, "the tool was {} ahead of its consumer", long.most_ahead);

    // One that is kept takes a few times of that, and comes again, byte for byte and without a run.
    let (first, most) = read("kept", MANY, KEPT);
    assert!(most < 8 * KEPT as u64, "{most} bytes");
    assert_eq!((first.chunks, first.replayed, first.recorded), (MANY, 0, true));
    let made = scene.made.load(Ordering::Relaxed);
    let (again, most) = read("kept", MANY, KEPT);
    assert!(most < 8 * KEPT as u64, "{most} bytes");
    assert_eq!((again.chunks, again.replayed), (MANY, MANY));
    assert_eq!(scene.made.load(Ordering::Relaxed), made, "it ran again");

    let counted = scene.metered.read()["openclaw_tool_stream_chunks{tool=tail}"];
    assert_eq!(counted as u64, 10 + 100 + 2 * MANY, "a replay makes no chunks");
    let spans = scene.exporter.get_finished_spans().unwrap();
    assert_eq!(spans.iter().filter(|span| span.name == "tool_execution").count(), 5);
    assert!(logs.text().lines().count() <= 2 * 5, "{}", logs.text());
}
