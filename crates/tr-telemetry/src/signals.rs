//! Telemetry settings and instruments that all layers and observers of one stack share. The user
//! makes them; `ToolStack` passes them to its layers.
use crate::{
    log,
    metrics::{CacheReadings, Metrics, Names},
    redact::{self, Redact, Redactor},
    spans::SpanStarter,
};
use opentelemetry::{metrics::Meter, trace::Tracer};
use std::{collections::HashMap, sync::Arc};
use tr_core::{
    ConfigError, ToolId,
    canonical::FingerprintKey,
    debug_parts,
    internal::{Faults, Sharded},
    setters,
};

/// Where telemetry goes, and how: shared by all layers and observers of one stack.
///
/// ```
/// use tr_telemetry::Signals;
///
/// let meter = opentelemetry::global::meter("my-agent");
/// let signals = Signals::builder().meter(meter).tools(["flight_search", "pay"]).build()?;
/// # Ok::<_, tr_telemetry::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Signals(Sharded<Core>);

/// The settings, as the layers see them.
#[derive(Clone)]
pub(crate) struct Core {
    pub(crate) logs: bool,
    /// [`Builder::params_shape`] was set.
    pub(crate) shapes: bool,
    /// By tool, the params whose values are shown.
    pub(crate) shown: Arc<Shown>,
    /// [`Names::Utee`] was chosen: also emits `tool_invocation`.
    pub(crate) utee: bool,
    /// The events are decisions of shadow mode, which were not applied. Metrics count them apart.
    pub(crate) shadow: bool,
    pub(crate) metrics: Option<Arc<Metrics>>,
    pub(crate) tracer: Option<Arc<dyn SpanStarter>>,
    pub(crate) redactor: Arc<dyn Redact>,
    pub(crate) fingerprints: FingerprintKey,
}

/// Names of params, by that of their tool.
type Shown = HashMap<Box<str>, Box<[Box<str>]>>;

/// Ids, names and codes are cut to this many bytes.
const MAX_ID: usize = 256;

/// Messages are cut to this many bytes.
const MAX_MESSAGE: usize = 512;

impl Core {
    /// Whether logging is on and a subscriber may want the events.
    #[inline]
    pub(crate) fn logs_enabled(&self) -> bool {
        self.logs && log::is_on()
    }

    /// The metrics of what really happened.
    #[inline]
    pub(crate) fn real_metrics(&self) -> Option<&Arc<Metrics>> {
        self.metrics.as_ref().filter(|_| !self.shadow)
    }

    /// Whether logs, metrics or spans are on.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.metrics.is_some() || self.tracer.is_some() || self.logs_enabled()
    }

    /// Redacts and cuts an id, name or code.
    pub(crate) fn redact_id(&self, id: &str) -> Box<str> {
        redact::cut(&*self.redactor, id, MAX_ID).into()
    }

    /// Redacts and cuts a message.
    pub(crate) fn redact_message(&self, message: &str) -> Box<str> {
        redact::cut(&*self.redactor, message, MAX_MESSAGE).into()
    }
}

debug_parts! { Core, |it| logs = it.logs, metrics = it.metrics, spans = it.tracer.is_some() }

impl Signals {
    /// Events only, to tracing's target `tool_reliability`.
    pub fn builder() -> Builder {
        let core = Core {
            logs: true,
            shapes: false,
            shown: Arc::default(),
            utee: false,
            shadow: false,
            metrics: None,
            tracer: None,
            redactor: Arc::new(Redactor::default()),
            fingerprints: FingerprintKey::of_process().clone(),
        };
        let names = vec![Names::OpenClaw];
        Builder { core, meter: None, names, tools: Vec::new(), unknown: 100 }
    }

    /// A copy for shadow mode, which decides without acting: events have `shadow: true`, metrics count the
    /// calls and the decisions in instruments of their own, and there are no spans.
    #[must_use]
    pub fn shadow(&self) -> Self {
        Self(Sharded::new(Core { shadow: true, tracer: None, ..Core::clone(&self.0) }))
    }

    /// A copy without events, for a second layer around calls that another one logs.
    #[must_use]
    pub fn without_logs(&self) -> Self {
        Self(Sharded::new(Core { logs: false, ..Core::clone(&self.0) }))
    }

    /// Exports the records of an idempotency store and their time to live as the gauges
    /// `openclaw_tool_dedupe_…`. Call it once for each
    /// store: the sizes of several add up, the longest time is shown. They are read for as long as
    /// the meter is. Without a meter, or without [`Names::OpenClaw`], it does nothing.
    pub fn observe_cache(&self, readings: impl CacheReadings + 'static) {
        if let Some(metrics) = self.0.real_metrics() {
            metrics.observe_cache(Arc::new(readings));
        }
    }

    /// Makes the [observed](Self::observe_cache) stores that cannot be read at once be read again: before a
    /// scrape, or from time to time.
    pub async fn refresh(&self) {
        if let Some(metrics) = self.0.real_metrics() {
            metrics.refresh().await;
        }
    }

    /// The redactor, for other logs about the same calls.
    #[must_use]
    pub fn redactor(&self) -> Arc<dyn Redact> {
        self.0.redactor.clone()
    }

    pub(crate) fn core(&self) -> Sharded<Core> {
        self.0.clone()
    }
}

/// Configures [`Signals`].
///
/// By default: events, no metrics, no spans; the names of [`Names::OpenClaw`]; 100 tools that were
/// not named get labels of their own; the usual [`Redactor`]; a fingerprint key drawn per process.
#[derive(Debug)]
#[must_use]
pub struct Builder {
    core: Core,
    meter: Option<Meter>,
    names: Vec<Names>,
    tools: Vec<ToolId>,
    unknown: usize,
}

impl Builder {
    /// Opens spans with `tracer`.
    pub fn tracer<T>(mut self, tracer: T) -> Self
    where
        T: Tracer + Send + Sync + 'static,
        T::Span: Send + Sync + 'static,
    {
        self.core.tracer = Some(Arc::new(tracer));
        self
    }

    /// Shows the values of these params of a tool in `tool_call_start`, beside the shape of the others: redacted,
    /// cut to 64 bytes, and never those of the tool's sensitive fields. `tool` is the name that events show.
    pub fn show_params<N: Into<Box<str>>>(
        mut self,
        tool: impl Into<Box<str>>,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Arc::make_mut(&mut self.core.shown).insert(tool.into(), names);
        self
    }

    /// Gives these tools labels of their own, beyond [`max_unknown_tools`](Self::max_unknown_tools).
    pub fn tools<T: Into<ToolId>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools.extend(tools.into_iter().map(Into::into));
        self
    }

    setters! {
        /// Emits no events.
        fn without_logs() { core.logs = false }

        /// Adds the shape of the params to `tool_call_start`: names, types, sizes and a keyed digest,
        /// and never a value. It costs reading the params once.
        fn params_shape() { core.shapes = true }

        /// Counts and measures with the instruments of `meter`.
        fn meter(meter: Meter) { meter = Some(meter) }

        /// Sets which names metrics have; several sets may be shown at once.
        fn names(names: impl IntoIterator<Item = Names>) { names = names.into_iter().collect() }

        /// Sets how many tools that were not named get labels of their own, 0 to 1,000; further
        /// ones share the label `_other`.
        fn max_unknown_tools(tools: usize) { unknown = tools }

        /// Sets the redactor for all reported text.
        fn redactor(redactor: impl Redact + 'static) { core.redactor = Arc::new(redactor) }

        /// Sets the key of `idempotencyKeyHash` and `paramsDigest`. Give all processes the same key
        /// to compare their logs.
        fn fingerprint_key(key: FingerprintKey) { core.fingerprints = key }
    }

    /// Makes the signals.
    ///
    /// # Errors
    /// Names every setting that is out of its range.
    pub fn build(self) -> Result<Signals, ConfigError> {
        let mut faults = Faults::default();
        faults.range("max_unknown_tools", self.unknown, 0..=1_000);
        if self.names.is_empty() {
            faults.push("`names` is empty, must have at least one set");
        }
        if self.tools.iter().any(|tool| tool.full_name().is_empty()) {
            faults.push("`tools` has an empty name");
        }
        faults.into_result("telemetry")?;
        let metrics = |meter| {
            let redactor = self.core.redactor.clone();
            Metrics::new(meter, &self.names, redactor, &self.tools, self.unknown)
        };
        let metrics = self.meter.map(metrics);
        let utee = self.names.contains(&Names::Utee);
        Ok(Signals(Sharded::new(Core { utee, metrics, ..self.core })))
    }
}
