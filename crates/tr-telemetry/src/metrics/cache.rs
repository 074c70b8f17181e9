//! Gauges of the idempotency records, read at each scrape.
use super::bound::scope_label;
use opentelemetry::{
    KeyValue, StringValue,
    metrics::{AsyncInstrument, Meter},
};
use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tr_core::{DedupeScope, internal::lock};

/// The state of a call that runs.
const IN_FLIGHT: &str = "inflight";

/// Records of one tool in one state.
#[derive(Clone, Copy, Debug)]
pub struct RecordCount<'r> {
    /// The tool's full name.
    pub tool: &'r str,
    /// For whose calls they are replayed.
    pub scope: DedupeScope,
    /// Their state, such as `inflight`, `done` and `failed`.
    pub state: &'static str,
    /// How many there are.
    pub records: u64,
    /// Those of them that are past their lease, so that their owner has ended or hangs.
    pub stale: u64,
    /// How long they are kept. Of several times for one tool and state the longest is shown.
    pub ttl: Duration,
}

/// The future of reading a store again: its cost is small beside that of the store.
pub type Refresh<'s> = Pin<Box<dyn Future<Output = ()> + Send + 's>>;

/// Counts the records of a store.
pub trait CacheReadings: Send + Sync {
    /// Reports the records, as [`refresh`](Self::refresh) last read them.
    fn read(&self, report: &mut dyn FnMut(RecordCount<'_>));

    /// Reads them again, from a store that cannot be read at once; by default there is none.
    fn refresh(&self) -> Option<Refresh<'_>> {
        None
    }
}

/// The value of a gauge's label, and how many of these records it shows.
type Shown = fn(&RecordCount<'_>, &mut dyn FnMut(&'static str, u64));

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
        let mut all = lock(&self.0);
        all.push(readings);
        if all.len() == 1 {
            drop(all);
            self.observe(meter, tool);
        }
    }

    fn all(&self) -> impl Fn() -> Vec<Arc<dyn CacheReadings>> + use<> {
        let all = self.0.clone();
        move || lock(&all).clone()
    }

    pub(super) async fn refresh(&self) {
        for store in self.all()() {
            if let Some(refresh) = store.refresh() {
                refresh.await;
            }
        }
    }

    fn observe(
        &self,
        meter: &Meter,
        tool: impl Fn(&str) -> StringValue + Clone + Send + Sync + 'static,
    ) {
        let scopes: Shown = |of, show| show(scope_label(of.scope), of.records);
        let states: Shown = |of, show| show(of.state, of.records);
        // Stale or not as text: exporters do not agree on how booleans are written.
        let in_flight: Shown = |of, show| {
            if of.state == IN_FLIGHT {
                show("true", of.stale);
                show("false", of.records - of.stale);
            }
        };
        for (name, about, label, shown) in [
            ("openclaw_tool_dedupe_cache_size", "Records of calls", "scope", scopes),
            ("openclaw_tool_dedupe_inflight_records", "Calls in flight", "stale", in_flight),
            ("openclaw_tool_dedupe_records", "Records of calls by their state", "state", states),
        ] {
            let (stores, tool) = (self.all(), tool.clone());
            let count = move |gauge: &dyn AsyncInstrument<u64>| {
                let mut sums: HashMap<(StringValue, &str), u64> = HashMap::new();
                for store in stores() {
                    // Tools without series of their own share one: their records add up.
                    store.read(&mut |of| {
                        shown(&of, &mut |value, records| {
                            *sums.entry((tool(of.tool), value)).or_default() += records;
                        });
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
                    store.read(&mut |of| {
                        let longest = longest.entry((tool(of.tool), of.state)).or_default();
                        *longest = of.ttl.max(*longest);
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
