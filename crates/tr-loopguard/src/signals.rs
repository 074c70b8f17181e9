//! Signals of loops without failures, and their thresholds.
use std::{ops::RangeInclusive, time::Duration};
use tr_core::{internal::Faults, setters};

/// What a signal can be configured to count to.
const COUNTS: RangeInclusive<u32> = 2..=100_000;

/// Signals of loops beyond failure counts: calls that repeat without progress. Each signal warns at
/// its threshold and, where the turn is known, refuses calls from twice the threshold on, unless
/// [`refuse`](Self::refuse) is off or the mode is [`Mode::Note`](crate::Mode::Note). Where the turn
/// is not known, they only warn; [`Mode::Strict`](crate::Mode::Strict) refuses as if it were known.
///
/// # When to use
///
/// For a model that runs unattended for long. Every call then costs a comparison of its response
/// (at most 128 KiB of it), and every turn up to 4 KiB of memory.
///
/// # What else changes
///
/// With signals, failures count by what a repeat can change. Transient failures do not count
/// against the limits of identical failures and of failures in a turn
/// ([`count_transient`](Self::count_transient)). Failures that depend on state are dropped once a
/// call has changed it. Malformed calls count for the whole turn.
///
/// ```
/// use std::time::Duration;
/// use tr_loopguard::{LoopGuardLayer, Signals};
///
/// let signals = Signals::default().repeats(15).quiet(Duration::from_secs(4 * 3600));
/// let layer = LoopGuardLayer::builder().signals(signals).build()?;
/// # Ok::<_, tr_loopguard::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Signals {
    pub(crate) repeats: u32,
    pub(crate) failing_repeats: u32,
    pub(crate) rounds: u32,
    pub(crate) same_error: u32,
    pub(crate) pace: Duration,
    pub(crate) quiet: Duration,
    pub(crate) count_transient: bool,
    pub(crate) refuse: bool,
    pub(crate) volatile: Vec<Box<str>>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            repeats: 10,
            failing_repeats: 5,
            rounds: 3,
            same_error: 3,
            pace: Duration::from_secs(10),
            quiet: Duration::from_secs(3600),
            count_transient: false,
            refuse: true,
            volatile: Vec::new(),
        }
    }
}

impl Signals {
    setters! {
        /// Sets how often one call may succeed with the same response before the model is warned; 10 by
        /// default: two sessions that made progress, of 845 calls, had up to 7 in a turn.
        fn repeats(times: u32) { repeats = times }

        /// Sets how often one call may fail in the same way, if that failure does not count against the
        /// turn; 5 by default, half of the limit for successes.
        fn failing_repeats(times: u32) { failing_repeats = times }

        /// Sets how often a cycle of 2 to 5 calls may repeat with the same responses; 3 by default: a
        /// second round can be intended.
        fn rounds(times: u32) { rounds = times }

        /// Sets how often a tool may fail with the same error and different args, without a success in
        /// between; 3 by default.
        fn same_error(times: u32) { same_error = times }

        /// Sets from which length on a pause before a call counts as a wait; 10 s by default. A model
        /// that waits between two polls does not loop.
        fn pace(pace: Duration) { pace = pace }

        /// Sets how long a polled result may stay the same; 1 h by default. Tools that are declared as
        /// polled have no limit.
        fn quiet(quiet: Duration) { quiet = quiet }

        /// Sets whether transient failures (timeouts, 429, 503, a reset connection) count against the
        /// limits of failures; `false` by default. They count for
        /// [`failing_repeats`](Self::failing_repeats) and [`same_error`](Self::same_error) either way,
        /// and always where the turn is not known, since they refuse nothing there.
        fn count_transient(count: bool) { count_transient = count }

        /// Sets whether a call is refused at twice a signal's threshold; `true` by default. Otherwise
        /// the model is only warned: at the threshold, at twice the threshold, at four times, and so
        /// on. Failures then count as they do without signals, wherever the turn is known.
        fn refuse(refuse: bool) { refuse = refuse }
    }

    /// Adds names whose values in a response are not compared, beside those of times, durations and
    /// request ids; none by default.
    pub fn volatile<N: Into<Box<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.volatile.extend(names.into_iter().map(Into::into));
        self
    }

    /// Finds the faults of the settings.
    pub(crate) fn check(&self, faults: &mut Faults) {
        let counts = [
            ("repeats", self.repeats),
            ("failing_repeats", self.failing_repeats),
            ("rounds", self.rounds),
            ("same_error", self.same_error),
        ];
        for (name, value) in counts {
            faults.range(format_args!("signals.{name}"), value, COUNTS);
        }
        for (name, value) in [("pace", self.pace), ("quiet", self.quiet)] {
            faults.check(format_args!("signals.{name}"), 0, !value.is_zero(), "positive");
        }
        if self.volatile.iter().any(|name| name.is_empty()) {
            faults.push("`signals.volatile` has an empty name");
        }
    }
}
