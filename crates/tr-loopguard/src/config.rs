//! The settings, and the one place where they can be wrong.
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

/// The most failures that a turn can be configured to remember.
const MAX_FAILURES: u32 = 1000;

/// What becomes of loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing: calls pass and nothing is counted.
    Off,
    /// The model is told, and nothing is refused.
    Note,
    /// Calls are refused by the limits of their turn. Where nobody says when a turn begins, only a
    /// call that is identical to failed ones is refused: the limit of failures warns, a success of
    /// the tool ends its count, and a failure counts for [`memory`](Builder::memory).
    #[default]
    Block,
    /// Calls are refused by the limits also where nobody says when a turn begins: within `memory`.
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

/// Where malformed calls are written down.
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
    /// Whether it guards at all; `true` by default. Off, calls pass and nothing is counted.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// What becomes of loops; [`Mode::Block`] by default.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Failures of one call with one error before the loop is broken; 2 by default.
    pub fn max_identical_failures(mut self, failures: u32) -> Self {
        self.identical = failures;
        self
    }

    /// Failures of any kind before the turn is stopped, or the model warned; 5 by default.
    pub fn max_failures_per_turn(mut self, failures: u32) -> Self {
        self.per_turn = failures;
        self
    }

    /// What is watched for beside failures; nothing by default.
    pub fn signals(mut self, signals: impl Into<Option<Signals>>) -> Self {
        self.signals = signals.into();
        self
    }

    /// How long a failure counts where calls do not name their turn; 60 s by default.
    pub fn memory(mut self, memory: Duration) -> Self {
        self.memory = memory;
        self
    }

    /// How many turns are remembered at once, the newest; 10,000 by default. A turn with failures
    /// is one of them, or with [`signals`](Self::signals) any.
    pub fn max_turns(mut self, turns: usize) -> Self {
        self.max_turns = turns;
        self
    }

    /// Where malformed calls are written down with the model that made them; nowhere by default.
    pub fn log(mut self, log: Arc<dyn AttributionLog>) -> Self {
        self.log = Some(Log::Given(log));
        self
    }

    /// The same, into a [`FileLog`]; its usual place is [`LOG_PATH`](crate::LOG_PATH).
    pub fn log_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(Log::File(path.into()));
        self
    }

    /// Has `clean` take secrets out of what is written to the file of [`log_path`](Self::log_path);
    /// nothing does by default.
    pub fn log_cleaning(mut self, clean: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.cleaner = Some(Cleaner::new(clean));
        self
    }

    /// Whom to ask for the time of a log entry; the machine's clock by default.
    pub fn wall_clock(mut self, clock: Arc<dyn WallClock>) -> Self {
        self.clock = clock;
        self
    }

    /// Who is told of broken loops; nobody by default.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Validates the settings; this is the only place that can fail.
    ///
    /// # Errors
    /// If a limit is 0 or absurdly high; all faults are named at once.
    pub fn build(self) -> Result<LoopGuardLayer, ConfigError> {
        let mut faults = Vec::new();
        for (name, value) in
            [("max_identical_failures", self.identical), ("max_failures_per_turn", self.per_turn)]
        {
            if !(1..=MAX_FAILURES).contains(&value) {
                faults.push(format!("{name} is {value}, but must be from 1 to {MAX_FAILURES}"));
            }
        }
        faults.extend(self.signals.iter().flat_map(Signals::faults));
        if self.memory.is_zero() {
            faults.push("memory is 0, but must be longer".to_owned());
        }
        if self.max_turns == 0 {
            faults.push("max_turns is 0, but must be at least 1".to_owned());
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

/// What all services of a layer share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Successes matter too.
    pub(crate) watches: bool,
    pub(crate) turns: Turns,
    pub(crate) log: Option<Arc<dyn AttributionLog>>,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

/// The settings cannot be used; it names every fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loop guard: {}", self.0.join("; "))
    }
}

impl Error for ConfigError {}
