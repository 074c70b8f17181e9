//! Metrics by tool, resolved once per tool.
//!
//! Each call costs one lookup in the table of this thread's stripe and one addition for each
//! instrument: labels are built at the first call of a tool.
mod bound;
mod cache;
mod decision;
mod gen_ai;
mod openclaw;
pub(crate) mod utee;

pub use self::cache::{CacheReadings, RecordCount, Refresh};
pub(crate) use self::{bound::Ended, decision::Decision};

use self::{
    bound::{OTHER, closed},
    cache::Caches,
};
use crate::redact::{self, Redact};
use hashbrown::HashTable;
use opentelemetry::{KeyValue, StringValue, metrics::Meter};
use std::{
    array,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};
use tr_core::{
    BreakerState, KeyRef, ToolId, debug_parts,
    internal::{STRIPES, Shard, Sharded, lock, stripe},
};

/// A set of metric names, and the events that belong to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Names {
    /// `openclaw_tool_…`: what a Prometheus scrape shows is spelled like that. The default.
    OpenClaw,
    /// `tool.invocation.…` of UTEE, and its event `tool_invocation`.
    Utee,
    /// `gen_ai.execute_tool.duration` of OpenTelemetry's conventions.
    GenAi,
}

/// The instruments of the chosen sets.
pub(crate) struct Instruments {
    openclaw: Option<openclaw::Instruments>,
    utee: Option<utee::Instruments>,
    gen_ai: Option<gen_ai::Instruments>,
    meter: Meter,
}

/// The instruments of one tool.
pub(crate) struct Series {
    instruments: Arc<Instruments>,
    tool: StringValue,
    openclaw: Option<openclaw::Series>,
    utee: Option<utee::Series>,
    gen_ai: Option<gen_ai::Series>,
}

impl Instruments {
    pub(crate) fn new(meter: Meter, names: &[Names]) -> Self {
        let has = |set| names.contains(&set);
        Self {
            openclaw: has(Names::OpenClaw).then(|| openclaw::Instruments::new(&meter)),
            utee: has(Names::Utee).then(|| utee::Instruments::new(&meter)),
            gen_ai: has(Names::GenAi).then(|| gen_ai::Instruments::new(&meter)),
            meter,
        }
    }
}

debug_parts! { Series, |it| tool = it.tool.as_str() }

impl Series {
    /// `action` is the end of `label` that comes after the tool's own name.
    pub(crate) fn new(instruments: Arc<Instruments>, label: &str, action: Option<&str>) -> Self {
        let tool = StringValue::from(Arc::<str>::from(label));
        Self {
            openclaw: instruments.openclaw.as_ref().map(|_| openclaw::Series::default()),
            utee: instruments.utee.as_ref().map(|_| utee::Series::new(label, action)),
            gen_ai: instruments.gen_ai.as_ref().map(|_| gen_ai::Series::default()),
            tool,
            instruments,
        }
    }

    fn tool(&self) -> KeyValue {
        KeyValue::new("tool", self.tool.clone())
    }

    /// A call ended.
    pub(crate) fn ended(&self, end: Ended<'_>) {
        let Instruments { openclaw, utee, gen_ai, .. } = &*self.instruments;
        if let (Some(set), Some(series)) = (openclaw, &self.openclaw) {
            series.ended(set, || self.tool(), &end);
        }
        if let (Some(set), Some(series)) = (utee, &self.utee) {
            series.ended(set, &end);
        }
        if let (Some(set), Some(series)) = (gen_ai, &self.gen_ai) {
            series.ended(set, &self.tool, &end);
        }
    }

    fn openclaw(&self, count: impl FnOnce(&openclaw::Instruments, KeyValue)) {
        if let Some(set) = &self.instruments.openclaw {
            count(set, self.tool());
        }
    }

    fn utee(&self, count: impl FnOnce(&utee::Instruments, &utee::Series)) {
        if let (Some(set), Some(series)) = (&self.instruments.utee, &self.utee) {
            count(set, series);
        }
    }

    /// A call ended whose answer came in chunks.
    pub(crate) fn streamed(&self, chunks: u64) {
        self.openclaw(|set, tool| set.chunks.add(chunks, &[tool]));
        self.utee(|set, series| set.chunks.add(chunks, &[series.tool(), series.action()]));
    }

    /// An attempt is tried again.
    pub(crate) fn retried(&self, reason: &str) {
        let reason = closed(reason);
        self.openclaw(|set, tool| set.retries.add(1, &[tool, KeyValue::new("reason", reason)]));
        self.utee(|set, series| {
            set.retries.add(1, &[series.tool(), KeyValue::new("error_code", reason)]);
        });
    }

    /// A record answered, or stood against, a call.
    pub(crate) fn hit(&self, state: &'static str) {
        self.openclaw(|set, tool| set.hits.add(1, &[tool, KeyValue::new("state", state)]));
    }

    /// A call of shadow mode ended.
    pub(crate) fn shadowed(&self) {
        self.openclaw(|set, tool| set.shadow_calls.add(1, &[tool]));
        self.utee(|set, series| set.shadow_calls.add(1, &[series.tool(), series.action()]));
    }

    /// Enforcing would have done this to a call.
    pub(crate) fn decided(&self, decision: Decision) {
        self.openclaw(|set, tool| set.decisions.add(1, &[tool, decision.label()]));
        self.utee(|set, series| {
            set.decisions.add(1, &[series.tool(), series.action(), decision.label()]);
        });
    }

    /// A call passed without a breaker.
    pub(crate) fn uncounted(&self) {
        self.openclaw(|set, tool| set.uncounted.add(1, &[tool]));
    }

    /// A breaker changed its state.
    pub(crate) fn moved(&self, from: BreakerState, to: BreakerState) {
        let Some(set) = &self.instruments.openclaw else { return };
        let (from, to) = (from.as_str(), to.as_str());
        let (left, entered) = (KeyValue::new("from_state", from), KeyValue::new("to_state", to));
        set.transitions.add(1, &[self.tool(), left, entered]);
        set.state.record(0, &[self.tool(), KeyValue::new("state", from)]);
        set.state.record(1, &[self.tool(), KeyValue::new("state", to)]);
    }
}

/// The instruments, and the tools that have series of their own: those that were named, and the first so
/// many others.
pub(crate) struct Metrics {
    instruments: Arc<Instruments>,
    stores: Caches,
    redactor: Arc<dyn Redact>,
    known: Mutex<Known>,
    other: Shard<Series>,
    /// For the threads of each stripe, the tools that they called: each stripe has a lock of its own.
    caches: [SeriesCache; STRIPES],
}

struct Known {
    by_label: HashMap<Box<str>, Shard<Series>>,
    room: usize,
}

#[derive(Default)]
#[repr(align(128))]
struct SeriesCache(RwLock<HashTable<Entry>>);

struct Entry {
    hash: u64,
    name: Box<str>,
    series: Shard<Series>,
}

/// Keys remembered per label: tools of several namespaces may have one label.
const KEYS_PER_LABEL: usize = 4;

/// Longer labels are cut, and tools whose labels read the same then share their series.
const LABEL: usize = 128;

/// Longer names are looked up by their label at each call: they are not kept.
const NAME: usize = 512;

impl Metrics {
    pub(crate) fn new(
        meter: Meter,
        names: &[Names],
        redactor: Arc<dyn Redact>,
        named: &[ToolId],
        unknown: usize,
    ) -> Arc<Self> {
        let instruments = Arc::new(Instruments::new(meter, names));
        let other = Sharded::new(Series::new(instruments.clone(), OTHER, None)).shard();
        let known = Known { by_label: HashMap::new(), room: named.len() };
        let metrics = Self {
            instruments,
            stores: Caches::default(),
            redactor,
            known: Mutex::new(known),
            other,
            caches: array::from_fn(|_| SeriesCache::default()),
        };
        for tool in named {
            metrics.of_label(tool.full_name(), tool.action());
        }
        metrics.known().room = unknown;
        Arc::new(metrics)
    }

    /// Something was done to a session because of a failure.
    pub(crate) fn session(&self, action: &'static str) {
        if let Some(set) = &self.instruments.openclaw {
            set.sessions.add(1, &[KeyValue::new("action", action)]);
        }
    }

    pub(crate) fn observe_cache(self: &Arc<Self>, readings: Arc<dyn CacheReadings>) {
        if self.instruments.openclaw.is_some() {
            let metrics = self.clone();
            let label = move |label: &str| metrics.of_label(label, None).tool.clone();
            self.stores.add(readings, &self.instruments.meter, label);
        }
    }

    pub(crate) async fn refresh(&self) {
        self.stores.refresh().await;
    }

    /// The series of a tool, by its key.
    #[inline]
    pub(crate) fn of_call<'r>(
        &self,
        key: KeyRef<'_>,
        named: impl FnOnce() -> (&'r str, Option<&'r str>),
    ) -> Shard<Series> {
        let cache = self.caches[stripe()].0.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = |entry: &Entry| entry.hash == key.hash && key.is_named(&entry.name);
        if let Some(entry) = cache.find(key.hash, is_it) {
            return entry.series.clone();
        }
        drop(cache);
        let (label, action) = named();
        self.remember(key, label, action)
    }

    #[cold]
    fn remember(&self, key: KeyRef<'_>, label: &str, action: Option<&str>) -> Shard<Series> {
        let series = self.of_label(label, action);
        let name = Some(key).filter(|key| key.name.len() <= NAME).map(|key| key.to_string());
        let Some(name) = name.filter(|name| name.len() <= NAME) else { return series };
        let most = KEYS_PER_LABEL * self.known().by_label.len();
        let mut cache = self.caches[stripe()].0.write().unwrap_or_else(PoisonError::into_inner);
        // A tool without series of its own is not remembered: there is no end of them.
        let is_there = cache.find(key.hash, |entry| key.is_named(&entry.name)).is_some();
        if !is_there && cache.len() < most && !self.is_other(&series) {
            let entry = Entry { hash: key.hash, name: name.into(), series: series.clone() };
            cache.insert_unique(key.hash, entry, |entry| entry.hash);
        }
        series
    }

    /// The series with this label, made if there is room.
    pub(crate) fn of_label(&self, label: &str, action: Option<&str>) -> Shard<Series> {
        let cut = || redact::cut(&*self.redactor, label, LABEL);
        let kept = if label.len() > LABEL { cut() } else { label.into() };
        if kept.is_empty() {
            return self.other.clone();
        }
        let mut known = self.known();
        if let Some(series) = known.by_label.get(&*kept) {
            return series.clone();
        }
        if known.room == 0 {
            return self.other.clone();
        }
        known.room -= 1;
        let series = Sharded::new(Series::new(self.instruments.clone(), &cut(), action));
        known.by_label.entry(kept.into()).or_insert_with(|| series.shard()).clone()
    }

    fn is_other(&self, series: &Series) -> bool {
        std::ptr::eq(&raw const *self.other, series)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

debug_parts! { Metrics, |it| known = it.known().by_label.len() }
