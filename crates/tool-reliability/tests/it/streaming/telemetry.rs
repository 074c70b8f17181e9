//! What telemetry tells of a stream: how many chunks, and nothing of what they say.
use super::support::{all, boxed, call};
use crate::metered::Metered;
use futures_util::{StreamExt, stream};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tool_reliability::{
    Streaming, ToolStack,
    streaming::{ChunkContent, ChunkLimits, stream_fn},
    telemetry::{JsonLines, Names, Signals},
};
use tr_core::{BoxError, Json, ToolCall, ToolManifest};
use tr_testkit::logs::Logs;
use tracing_subscriber::{prelude::*, registry};

/// Everything that is exported of one call: logs, spans and metrics, as text.
async fn told(chunks: Vec<ChunkContent>, error: &'static str, limits: ChunkLimits) -> String {
    let (logs, _guard) = Logs::listen(|logs| registry().with(JsonLines::new(logs)));
    let (metered, exporter) = (Metered::new(), InMemorySpanExporter::default());
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let signals = Signals::builder()
        .meter(metered.meter())
        .names([Names::OpenClaw, Names::Utee, Names::GenAi])
        .tracer(provider.tracer("test"))
        .params_shape()
        .build()
        .unwrap();
    let stack = ToolStack::builder().telemetry(signals).build().unwrap();
    let sent = chunks.len();
    let tool = stream_fn(move |_: ToolCall| {
        let end = (!error.is_empty()).then(|| Err(BoxError::from(error)));
        stream::iter(chunks.clone()).map(Ok).chain(stream::iter(end))
    });
    let tool = Streaming::new(stack.service(boxed(tool))).limits(limits);
    let mut manifest = ToolManifest::new("tail");
    manifest.sensitive = vec!["passport_no".into()];
    let seen = all(&tool, call("tail").manifested(manifest.into()).idempotency_key("k")).await;
    assert_eq!(seen.len(), sent + 1);
    if error.is_empty() {
        // A replay is told of, too.
        assert_eq!(all(&tool, call("tail").idempotency_key("k")).await.len(), seen.len());
    }
    let metrics = metered.read();
    let count = |name: &str| metrics.get(name).copied();
    assert_eq!(count("openclaw_tool_stream_chunks{tool=tail}"), Some(sent as f64));
    assert_eq!(count("tool.stream.chunks{action=,tool=tail}"), Some(sent as f64));
    let spans = exporter.get_finished_spans().unwrap();
    let execution = spans.iter().find(|span| span.name == "tool_execution").unwrap();
    let attribute = execution.attributes.iter().find(|it| it.key.as_str() == "stream.chunks");
    assert_eq!(attribute.unwrap().value, opentelemetry::Value::I64(sent as i64));
    format!("{}\n{spans:?}\n{metrics:?}", logs.text())
}

#[tokio::test(start_paused = true)]
async fn ut_07_chunks_are_counted_and_none_of_their_text_leaves() {
    let chunks =
        ["the launch co", "de is oysters-quince", "-mango"].map(ChunkContent::text).to_vec();
    let told = told(chunks, "", ChunkLimits::default()).await;
    for text in ["launch", "code is", "oysters", "quince", "mango"] {
        assert!(!told.contains(text), "`{text}` in {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_quotes_what_was_streamed_is_redacted_across_chunks() {
    let values = r#"{"passportNo": "X17-WXYZ"}"#;
    let error = "the embassy refused X17-WXYZ at once";
    let mut short = ChunkLimits::default();
    short.kept_bytes = 10;
    let texts = [&values[..18], &values[18..21], &values[21..]].map(ChunkContent::text).to_vec();
    let whole = vec![ChunkContent::value(Json::from_text(values).unwrap())];
    for (chunks, limits) in [
        (texts.clone(), ChunkLimits::default()),
        (whole, ChunkLimits::default()),
        // One JSON text on each line.
        (
            ["{\"n\": 1}\n{\"passport_no\": \"X17-", "WXYZ\"}\n"].map(ChunkContent::text).to_vec(),
            ChunkLimits::default(),
        ),
        // What was not kept cannot be looked for, so nothing of the message is shown.
        (texts, short),
    ] {
        let told = told(chunks, error, limits).await;
        assert!(!told.contains("X17") && !told.contains("WXYZ"), "{told}");
        assert_eq!(told.contains("the embassy refused"), limits.kept_bytes > 10, "{told}");
    }
}
