//! Metrics by tool, resolved once per tool.
//!
//! Each call costs one lookup in the table of this thread's stripe and one addition for each
//! instrument: labels are built at the first call of a tool.
mod bound;
mod cache;
mod gen_ai;
mod openclaw;
mod tools;
pub(crate) mod utee;

pub use self::cache::CacheReadings;
pub(crate) use self::tools::Tools;

use crate::redact::Redact;
use opentelemetry::{KeyValue, StringValue, metrics::Meter};
use std::{fmt, sync::Arc, time::Duration};
use tr_core::{BreakerState, KeyRef, Scope, Sharded, ToolId, classify::Kind, wire::Status};

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

/// The label of tools past the bound, and of unknown codes.
pub(crate) const OTHER: &str = "_other";

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

/// How a call ended, as labels say it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'r> {
    pub(crate) status: Status,
    pub(crate) scope: Scope,
    pub(crate) code: &'r str,
    pub(crate) elapsed: Duration,
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

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Series").field(&self.tool.as_str()).finish()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tools.fmt(f)
    }
}

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

    /// An attempt is tried again.
    pub(crate) fn retried(&self, reason: &str) {
        let reason = closed(reason);
        if let Some(set) = &self.instruments.openclaw {
            set.retries.add(1, &[self.tool(), KeyValue::new("reason", reason)]);
        }
        if let (Some(set), Some(series)) = (&self.instruments.utee, &self.utee) {
            series.retried(set, reason);
        }
    }

    /// A record answered, or stood against, a call.
    pub(crate) fn hit(&self, state: &'static str) {
        if let Some(set) = &self.instruments.openclaw {
            set.hits.add(1, &[self.tool(), KeyValue::new("state", state)]);
        }
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

/// The instruments, and the known tools.
pub(crate) struct Metrics {
    instruments: Arc<Instruments>,
    tools: Arc<Tools>,
    caches: cache::Caches,
}

impl Metrics {
    pub(crate) fn new(
        meter: Meter,
        names: &[Names],
        redactor: Arc<dyn Redact>,
        tools: &[ToolId],
        unknown: usize,
    ) -> Self {
        let instruments = Arc::new(Instruments::new(meter, names));
        let tools = Tools::new(&instruments, redactor, tools, unknown);
        Self { instruments, tools: Arc::new(tools), caches: cache::Caches::default() }
    }

    /// The series of a tool, by its key.
    #[inline]
    pub(crate) fn of_call<'r>(
        &self,
        key: KeyRef<'_>,
        named: impl FnOnce() -> (&'r str, Option<&'r str>),
    ) -> Sharded<Series> {
        self.tools.of_call(key, named)
    }

    /// The series of a tool, by its label.
    pub(crate) fn of_label(&self, label: &str) -> Sharded<Series> {
        self.tools.of_label(label, None)
    }

    /// Something was done to a session because of a failure.
    pub(crate) fn session(&self, action: &'static str) {
        if let Some(set) = &self.instruments.openclaw {
            set.sessions.add(1, &[KeyValue::new("action", action)]);
        }
    }

    pub(crate) fn observe_cache(&self, readings: Arc<dyn CacheReadings>) {
        if self.instruments.openclaw.is_some() {
            self.caches.add(readings, &self.instruments.meter, &self.tools);
        }
    }
}

/// A code as a label: a known one, so that tools cannot create unbounded labels.
fn closed(code: &str) -> &'static str {
    Kind::from_code(code).map_or(OTHER, Kind::code)
}

fn millis(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * 1e3
}
