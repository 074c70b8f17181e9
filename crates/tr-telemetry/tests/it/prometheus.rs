//! What a Prometheus scrape shows: the seed's names and labels, letter by letter.
use crate::common::{call, tell, telling};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder as _, TextEncoder};
use std::time::Duration;
use tower::{ServiceExt, layer::Layer};
use tr_core::{BreakerState, DedupeScope, Event, MatchedOn, ToolOutcome};
use tr_telemetry::{CacheReadings, RecordCount, Signals, TelemetryLayer};

struct Store;

impl CacheReadings for Store {
    fn read(&self, report: &mut dyn FnMut(RecordCount<'_>)) {
        let ttl = Duration::from_secs(86_400);
        let (scope, state, records) = (DedupeScope::Session, "done", 7);
        report(RecordCount { tool: "pay", scope, state, records, stale: 0, ttl });
    }
}

#[tokio::test(start_paused = true)]
async fn a_scrape_shows_the_seeds_spelling() {
    let registry = prometheus::Registry::new();
    let reader = opentelemetry_prometheus::exporter()
        .with_registry(registry.clone())
        .scope_info_enabled(false)
        .without_target_info()
        .build()
        .unwrap();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let signals = Signals::builder().meter(provider.meter("test")).build().unwrap();
    signals.observe_cache(Store);
    let tool = telling(
        signals.observer(),
        |observer, call| {
            let (delay, latency) = (Duration::ZERO, Duration::ZERO);
            tell(
                observer,
                call,
                Event::Retry { attempt: 0, delay, retry_after: None, reason: "timeout", latency },
            );
            tell(observer, call, Event::Replayed { matched: MatchedOn::Completed, state: "done" });
            let (from, to) = (BreakerState::Closed, BreakerState::Open);
            tell(observer, call, Event::Breaker { breaker: "pay", from, to });
        },
        || Ok(ToolOutcome::default()),
    );
    TelemetryLayer::call(&signals).layer(tool).oneshot(call("pay")).await.unwrap();

    let mut scrape = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut scrape).unwrap();
    let scrape = String::from_utf8(scrape).unwrap();
    let series: Vec<&str> = scrape.lines().filter(|line| !line.starts_with('#')).collect();
    for wanted in [
        r#"openclaw_tool_calls_total{scope="session",status="success",tool="pay"} 1"#,
        r#"openclaw_tool_call_duration_ms_bucket{status="success",tool="pay",le="2500"} 1"#,
        r#"openclaw_tool_call_duration_ms_count{status="success",tool="pay"} 1"#,
        r#"openclaw_tool_retry_attempts_total{reason="timeout",tool="pay"} 1"#,
        r#"openclaw_tool_info{effect="mutating",tool="pay"} 1"#,
        r#"openclaw_tool_idempotency_hits_total{state="done",tool="pay"} 1"#,
        r#"openclaw_tool_dedupe_cache_size{scope="session",tool="pay"} 7"#,
        r#"openclaw_tool_dedupe_records{state="done",tool="pay"} 7"#,
        r#"openclaw_tool_dedupe_ttl_seconds{state="done",tool="pay"} 86400"#,
        r#"openclaw_tool_circuit_breaker_state{state="CLOSED",tool="pay"} 0"#,
        r#"openclaw_tool_circuit_breaker_state{state="OPEN",tool="pay"} 1"#,
        r#"openclaw_tool_circuit_breaker_transitions_total{from_state="CLOSED",to_state="OPEN",tool="pay"} 1"#,
    ] {
        assert!(series.contains(&wanted), "{wanted} is not in:\n{scrape}");
    }
    let names: std::collections::BTreeSet<&str> =
        series.iter().filter_map(|line| line.split('{').next()).collect();
    assert_eq!(names.len(), 12, "ten metrics, one of them in three parts: {names:?}");
}
