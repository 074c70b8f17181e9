//! Gauges of the records that idempotency keeps, read when somebody scrapes.
use super::{Tools, openclaw::scope_label};
use opentelemetry::{KeyValue, StringValue, metrics::Meter};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tr_core::Scope;

/// Reads how many records there are and how long they live, when somebody scrapes.
pub trait CacheReadings: Send + Sync {
    /// Reports the number of records for each tool's label and scope.
    fn sizes(&self, report: &mut dyn FnMut(&str, Scope, u64));

    /// Reports how long records of each tool's label are kept, by their state: `inflight`,
    /// `done`, `failed`.
    fn ttls(&self, report: &mut dyn FnMut(&str, &'static str, Duration));
}

pub(super) fn observe(meter: &Meter, readings: &Arc<dyn CacheReadings>, tools: &Arc<Tools>) {
    let (source, known) = (readings.clone(), tools.clone());
    meter
        .u64_observable_gauge("openclaw_tool_dedupe_cache_size")
        .with_description("Records of calls")
        .with_callback(move |gauge| {
            let mut sums: HashMap<(StringValue, &str), u64> = HashMap::new();
            source.sizes(&mut |label, scope, records| {
                // Tools without series of their own share one: their records add up.
                let tool = known.of_label(label, None).tool.clone();
                *sums.entry((tool, scope_label(scope))).or_default() += records;
            });
            for ((tool, scope), records) in sums {
                gauge.observe(
                    records,
                    &[KeyValue::new("tool", tool), KeyValue::new("scope", scope)],
                );
            }
        })
        .build();

    let (source, known) = (readings.clone(), tools.clone());
    meter
        .f64_observable_gauge("openclaw_tool_dedupe_ttl_seconds")
        .with_description("How long records of calls are kept")
        .with_callback(move |gauge| {
            source.ttls(&mut |label, state, ttl| {
                let tool = KeyValue::new("tool", known.of_label(label, None).tool.clone());
                gauge.observe(ttl.as_secs_f64(), &[tool, KeyValue::new("state", state)]);
            });
        })
        .build();
}
