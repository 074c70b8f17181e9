//! Gauges of the idempotency records, read at each scrape.
use super::bound::scope_label;
use opentelemetry::{
    KeyValue, StringValue,
    metrics::{AsyncInstrument, Meter},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tr_core::DedupeScope;

/// Reads the number of records and their lifetimes at each scrape.
pub trait CacheReadings: Send + Sync {
    /// Reports the number of records for each tool's label and scope.
    fn sizes(&self, report: &mut dyn FnMut(&str, DedupeScope, u64));

    /// Reports how long records of each tool's label are kept, by their state, such as `inflight`,
    /// `done` and `failed`. Of several times for one tool and state the longest is shown.
    fn ttls(&self, report: &mut dyn FnMut(&str, &'static str, Duration));

    /// Reports how many calls of each tool's label are in flight, and whether those are stale: past their
    /// lease, so that their owner has ended or hangs. By default none.
    fn in_flight(&self, _report: &mut dyn FnMut(&str, bool, u64)) {}
}

/// Takes a tool's label, the value of another label, and a number of records.
type Report<'r> = &'r mut dyn FnMut(&str, &'static str, u64);

/// Reports how many records each tool has of each value of a label.
type Read = fn(&dyn CacheReadings, Report<'_>);

/// All stores that are read; the gauges are made for the first.
#[derive(Clone, Default)]
pub(super) struct Caches(Arc<Mutex<Vec<Arc<dyn CacheReadings>>>>);

impl Caches {
    /// `tool` is the label of a tool with this name.
    pub(super) fn add(
        &self,
        readings: Arc<dyn CacheReadings>,
        meter: &Meter,
        tool: impl Fn(&str) -> StringValue + Clone + Send + Sync + 'static,
    ) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(readings);
        if all.len() == 1 {
            drop(all);
            self.observe(meter, tool);
        }
    }

    fn all(&self) -> impl Fn() -> Vec<Arc<dyn CacheReadings>> + use<> {
        let all = self.0.clone();
        move || all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn observe(
        &self,
        meter: &Meter,
        tool: impl Fn(&str) -> StringValue + Clone + Send + Sync + 'static,
    ) {
        let scopes: Read = |store, report| {
            store.sizes(&mut |tool, scope, records| report(tool, scope_label(scope), records));
        };
        // Stale or not as text: exporters do not agree on how booleans are written.
        let in_flight: Read = |store, report| {
            store.in_flight(&mut |tool, stale, records| {
                report(tool, if stale { "true" } else { "false" }, records);
            });
        };
        let about = "Records of calls in flight, within their lease or past it (stale)";
        for (name, about, label, read) in [
            ("openclaw_tool_dedupe_cache_size", "Records of calls", "scope", scopes),
            ("openclaw_tool_dedupe_inflight_records", about, "stale", in_flight),
        ] {
            let (stores, tool) = (self.all(), tool.clone());
            let count = move |gauge: &dyn AsyncInstrument<u64>| {
                let mut sums: HashMap<(StringValue, &str), u64> = HashMap::new();
                for store in stores() {
                    // Tools without series of their own share one: their records add up.
                    read(&*store, &mut |of, value, records| {
                        *sums.entry((tool(of), value)).or_default() += records;
                    });
                }
                for ((tool, value), records) in sums {
                    let value = KeyValue::new(label, value);
                    gauge.observe(records, &[KeyValue::new("tool", tool), value]);
                }
            };
            let gauge = meter.u64_observable_gauge(name).with_description(about);
            gauge.with_callback(count).build();
        }

        let stores = self.all();
        meter
            .f64_observable_gauge("openclaw_tool_dedupe_ttl_seconds")
            .with_description("How long records of calls are kept")
            .with_callback(move |gauge| {
                let mut longest: HashMap<(StringValue, &str), Duration> = HashMap::new();
                for store in stores() {
                    store.ttls(&mut |label, state, ttl| {
                        let of = longest.entry((tool(label), state)).or_default();
                        *of = ttl.max(*of);
                    });
                }
                for ((tool, state), ttl) in longest {
                    let state = KeyValue::new("state", state);
                    gauge.observe(ttl.as_secs_f64(), &[KeyValue::new("tool", tool), state]);
                }
            })
            .build();
    }
}
