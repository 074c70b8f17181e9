//! The layer and its builder.
use crate::{
    Mode, Signals,
    attribution::AttributionLog,
    call_limit::CallLimits,
    log_file::{FileLog, Redactor},
    service::LoopGuard,
    turn::Limits,
    turns::{Settings, Turns},
    watch::Shared,
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tower_layer::Layer;
use tr_core::{
    ConfigError, DefaultPolicy, Observer, SystemClock, WallClock,
    internal::{Faults, Sharded},
    setters,
};

/// The most failures that a limit can be set to.
const MAX_FAILURES: u32 = 1000;

/// Wraps services in [`LoopGuard`]; all services of one layer share the same turns.
#[derive(Clone, Debug)]
pub struct LoopGuardLayer<A = DefaultPolicy> {
    /// `None`: off.
    shared: Option<Sharded<Shared>>,
    policy: A,
}

impl LoopGuardLayer {
    /// Starts from the defaults: 2 identical failures, 5 in a turn.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for LoopGuardLayer {
    fn default() -> Self {
        Self::builder().build().expect("the defaults are valid")
    }
}

impl<A> LoopGuardLayer<A> {
    /// The handle to begin and end turns; `None` if the guard is off.
    #[must_use]
    pub fn turns(&self) -> Option<&Turns> {
        self.shared.as_ref().map(|shared| &shared.turns)
    }
}

impl<S, A: Clone> Layer<S> for LoopGuardLayer<A> {
    type Service = LoopGuard<S, A>;

    fn layer(&self, inner: S) -> LoopGuard<S, A> {
        LoopGuard::new(inner, self.shared.as_ref().map(Sharded::shard), self.policy.clone())
    }
}

/// Configures a [`LoopGuardLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder<A = DefaultPolicy> {
    options: Options,
    policy: A,
}

/// What is set, whatever the policy.
#[derive(Clone, Debug)]
struct Options {
    enabled: bool,
    turns: Settings,
    log: Option<Log>,
    redactor: Option<Redactor>,
    clock: Arc<dyn WallClock>,
    observer: Option<Arc<dyn Observer>>,
}

/// The log of malformed calls.
#[derive(Clone, Debug)]
enum Log {
    Given(Arc<dyn AttributionLog>),
    File(PathBuf),
}

impl Default for Builder {
    fn default() -> Self {
        Self { options: Options::default(), policy: DefaultPolicy }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: true,
            turns: Settings {
                mode: Mode::default(),
                limits: Limits { identical: 2, per_turn: 5 },
                calls: CallLimits::default(),
                signals: None,
                memory: Duration::from_secs(60),
                max_turns: 10_000,
            },
            log: None,
            redactor: None,
            clock: Arc::new(SystemClock),
            observer: None,
        }
    }
}

impl<A> Builder<A> {
    setters! {
        /// Enables the guard; `true` by default. If it is off, calls pass and nothing is counted.
        fn enabled(enabled: bool) { options.enabled = enabled }

        /// Sets what to do about loops; [`Mode::Block`] by default.
        fn mode(mode: Mode) { options.turns.mode = mode }

        /// Sets how many failures of one call with one error are a loop; 2 by default.
        fn max_identical_failures(failures: u32) { options.turns.limits.identical = failures }

        /// Sets how many failures of any kind stop the turn, or warn the model; 5 by default.
        fn max_failures_per_turn(failures: u32) { options.turns.limits.per_turn = failures }

        /// Sets how many calls a turn may have, whatever their ends; no limit by default. For calls that do
        /// not name their turn, a turn that nothing [begins](Turns::begin) ends when [`memory`](Self::memory) passes
        /// without a call. A tool's own limit counts its calls alone, beside this one.
        fn calls_per_turn(calls: u32) { options.turns.calls.per_turn = Some(calls) }

        /// Sets how many calls a session may have; no limit by default.
        fn calls_per_session(calls: u32) { options.turns.calls.per_session = Some(calls) }

        /// Sets the signals that are detected beside failures; none by default.
        fn signals(signals: impl Into<Option<Signals>>) { options.turns.signals = signals.into() }

        /// Sets how long a failure counts where calls do not name their turn; 60 s by default.
        fn memory(memory: Duration) { options.turns.memory = memory }

        /// Sets how many turns are kept, the newest; 10,000 by default. Only turns with failures are
        /// kept; with [`signals`](Self::signals), all are.
        fn max_turns(turns: usize) { options.turns.max_turns = turns }

        /// Sets the log of malformed calls and their models; none by default.
        fn log(log: Arc<dyn AttributionLog>) { options.log = Some(Log::Given(log)) }

        /// Like [`log`](Self::log), with a [`FileLog`]; its usual path is
        /// [`LOG_PATH`](crate::LOG_PATH).
        fn log_path(path: impl Into<PathBuf>) { options.log = Some(Log::File(path.into())) }

        /// Sets the function that redacts secrets in the file of [`log_path`](Self::log_path); none
        /// by default.
        fn log_cleaning(clean: impl Fn(&str) -> String + Send + Sync + 'static) {
            options.redactor = Some(Redactor::new(clean))
        }

        /// Sets the clock for the times of log entries; the machine's by default.
        fn wall_clock(clock: Arc<dyn WallClock>) { options.clock = clock }

        /// Sets the observer of loops; none by default.
        fn observer(observer: Arc<dyn Observer>) { options.observer = Some(observer) }
    }

    /// Sets the policy that reads requests and responses; [`DefaultPolicy`] by default.
    pub fn policy<B>(self, policy: B) -> Builder<B> {
        Builder { options: self.options, policy }
    }

    /// Validates the settings; this is the only place that can fail.
    ///
    /// # Errors
    /// If a limit is out of its range; the error lists every fault.
    pub fn build(self) -> Result<LoopGuardLayer<A>, ConfigError> {
        let Self { options, policy } = self;
        let mut faults = Faults::default();
        for (name, value) in [
            ("max_identical_failures", options.turns.limits.identical),
            ("max_failures_per_turn", options.turns.limits.per_turn),
        ] {
            faults.range(name, value, 1..=MAX_FAILURES);
        }
        for (name, value) in [
            ("calls_per_turn", options.turns.calls.per_turn),
            ("calls_per_session", options.turns.calls.per_session),
        ] {
            faults.range(name, value.unwrap_or(1), 1..=u32::MAX);
        }
        if let Some(signals) = &options.turns.signals {
            signals.check(&mut faults);
        }
        faults.check("memory", 0, !options.turns.memory.is_zero(), "positive");
        faults.check("max_turns", 0, options.turns.max_turns > 0, "at least 1");
        faults.into_result("loop guard")?;
        let is_on = options.enabled && options.turns.mode != Mode::Off;
        let log = options.log.filter(|_| is_on).map(|log| match log {
            Log::Given(log) => log,
            Log::File(path) => Arc::new(FileLog::new(path).redacted_by(options.redactor)),
        });
        let shared = Shared {
            watches: options.turns.signals.is_some(),
            turns: Turns::new(options.turns),
            log,
            clock: options.clock,
            observer: options.observer,
        };
        Ok(LoopGuardLayer { shared: is_on.then(|| Sharded::new(shared)), policy })
    }
}
