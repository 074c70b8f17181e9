//! The settings and their validation.
use crate::{
    Signals,
    attribution::AttributionLog,
    layer::LoopGuardLayer,
    log_file::{Cleaner, FileLog},
    turn::Limits,
    turns::Turns,
};
use std::{error::Error, fmt, path::PathBuf, sync::Arc, time::Duration};
use tr_core::{DefaultPolicy, Observer, Sharded, SystemClock, WallClock};

/// The most failures that a limit can be set to.
const MAX_FAILURES: u32 = 1000;

/// What to do about loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing: calls pass, and nothing is counted.
    Off,
    /// The model is warned, and nothing is refused.
    Note,
    /// Calls are refused by the limits of their turn. Where the start of a turn is not known, only
    /// a call that is identical to failed ones is refused: the limit of failures warns, a success
    /// of the tool resets its count, and a failure counts for [`memory`](Builder::memory).
    #[default]
    Block,
    /// Calls are refused by the limits also where the start of a turn is not known: within
    /// `memory`.
    Strict,
}

/// Configures a [`LoopGuardLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    enabled: bool,
    mode: Mode,
    identical: u32,
    per_turn: u32,
    signals: Option<Signals>,
    memory: Duration,
    max_turns: usize,
    log: Option<Log>,
    cleaner: Option<Cleaner>,
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
        Self {
            enabled: true,
            mode: Mode::default(),
            identical: 2,
            per_turn: 5,
            signals: None,
            memory: Duration::from_secs(60),
            max_turns: 10_000,
            log: None,
            cleaner: None,
            clock: Arc::new(SystemClock),
            observer: None,
        }
    }
}

impl Builder {
    /// Enables the guard; `true` by default. If it is off, calls pass and nothing is counted.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets what to do about loops; [`Mode::Block`] by default.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how many failures of one call with one error are a loop; 2 by default.
    pub fn max_identical_failures(mut self, failures: u32) -> Self {
        self.identical = failures;
        self
    }

    /// Sets how many failures of any kind stop the turn, or warn the model; 5 by default.
    pub fn max_failures_per_turn(mut self, failures: u32) -> Self {
        self.per_turn = failures;
        self
    }

    /// Sets the signals that are detected beside failures; none by default.
    pub fn signals(mut self, signals: impl Into<Option<Signals>>) -> Self {
        self.signals = signals.into();
        self
    }

    /// Sets how long a failure counts where calls do not name their turn; 60 s by default.
    pub fn memory(mut self, memory: Duration) -> Self {
        self.memory = memory;
        self
    }

    /// Sets how many turns are kept, the newest; 10,000 by default. Only turns with failures are
    /// kept; with [`signals`](Self::signals), all are.
    pub fn max_turns(mut self, turns: usize) -> Self {
        self.max_turns = turns;
        self
    }

    /// Sets the log of malformed calls and their models; none by default.
    pub fn log(mut self, log: Arc<dyn AttributionLog>) -> Self {
        self.log = Some(Log::Given(log));
        self
    }

    /// Like [`log`](Self::log), with a [`FileLog`]; its usual path is
    /// [`LOG_PATH`](crate::LOG_PATH).
    pub fn log_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(Log::File(path.into()));
        self
    }

    /// Sets the function that redacts secrets in the file of [`log_path`](Self::log_path); none by
    /// default.
    pub fn log_cleaning(mut self, clean: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.cleaner = Some(Cleaner::new(clean));
        self
    }

    /// Sets the clock for the times of log entries; the machine's by default.
    pub fn wall_clock(mut self, clock: Arc<dyn WallClock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the observer of loops; none by default.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Validates the settings; this is the only place that can fail.
    ///
    /// # Errors
    /// If a limit is out of its range; the error lists every fault.
    pub fn build(self) -> Result<LoopGuardLayer, ConfigError> {
        let mut faults = Vec::new();
        for (name, value) in
            [("max_identical_failures", self.identical), ("max_failures_per_turn", self.per_turn)]
        {
            if !(1..=MAX_FAILURES).contains(&value) {
                faults.push(format!("`{name}` is {value}, must be 1 to {MAX_FAILURES}"));
            }
        }
        faults.extend(self.signals.iter().flat_map(Signals::faults));
        if self.memory.is_zero() {
            faults.push("`memory` is 0, must be positive".to_owned());
        }
        if self.max_turns == 0 {
            faults.push("`max_turns` is 0, must be at least 1".to_owned());
        }
        if !faults.is_empty() {
            return Err(ConfigError(faults));
        }
        let is_on = self.enabled && self.mode != Mode::Off;
        let limits = Limits { identical: self.identical, per_turn: self.per_turn };
        let log = self.log.filter(|_| is_on).map(|log| match log {
            Log::Given(log) => log,
            Log::File(path) => Arc::new(FileLog::new(path).cleaned_by(self.cleaner)),
        });
        let shared = Shared {
            watches: self.signals.is_some(),
            turns: Turns::new(self.mode, limits, self.signals, self.memory, self.max_turns),
            log,
            clock: self.clock,
            observer: self.observer,
        };
        Ok(LoopGuardLayer::with(is_on.then(|| Sharded::new(shared)), DefaultPolicy))
    }
}

/// The state that all services of a layer share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Whether signals are enabled, so that successes matter too.
    pub(crate) watches: bool,
    pub(crate) turns: Turns,
    pub(crate) log: Option<Arc<dyn AttributionLog>>,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

/// Invalid settings, with every fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid loop guard configuration: {}", self.0.join("; "))
    }
}

impl Error for ConfigError {}
