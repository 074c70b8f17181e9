//! What is watched for beside failures, and from when on it is a loop.
use crate::track::{End, Rule, Signal, Step};
use std::time::Duration;

/// The most that a signal can be configured to count.
const MAX_COUNT: u32 = 100_000;

/// What is watched for beside the failures that a turn counts anyway: calls that go round without
/// getting anywhere. Each signal warns at its number and, where the turn is known, refuses from twice
/// of it on, unless [`refuse`](Self::refuse) is off or the mode is [`Mode::Note`](crate::Mode::Note).
/// Where the turn is not known, only a call that goes on failing is refused, but in
/// [`Mode::Strict`](crate::Mode::Strict) as where it is known.
///
/// # When to use
///
/// In front of a model that acts by itself for long. It makes every call cost a look at its answer
/// (at most 128 KiB of it are compared), and every turn up to 4 KiB while it lasts.
///
/// # What else changes
///
/// With signals, failures are counted as somebody would who knows what a repeat can change: those
/// that are known to pass by themselves do not count against the limits of identical failures and
/// of failures in a turn ([`count_transient`](Self::count_transient)); those that depend on the
/// world are forgotten once a call has changed it; malformed calls count for the whole turn.
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
    /// How often one call may succeed with one answer before the model is warned; 10 by default:
    /// up to 7 were seen in a turn of a real session that got somewhere.
    pub fn repeats(mut self, times: u32) -> Self {
        self.repeats = times;
        self
    }

    /// How often one call may fail in one way that does not count as a failure of the turn; 5 by
    /// default, half of what is allowed to successes.
    pub fn failing_repeats(mut self, times: u32) -> Self {
        self.failing_repeats = times;
        self
    }

    /// How often 2 to 5 calls may come around with the same answers; 3 by default: twice can be a
    /// second look.
    pub fn rounds(mut self, times: u32) -> Self {
        self.rounds = times;
        self
    }

    /// How often a tool may fail in one way whatever its args, with no success of its own in
    /// between; 3 by default.
    pub fn same_error(mut self, times: u32) -> Self {
        self.same_error = times;
        self
    }

    /// From which length on a pause or a call is a wait; 10 s by default. Who waits between two
    /// looks does not spin: at that pace a look costs less than what it looks at.
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// For how long something that is waited for may stay the same; 1 h by default. Tools that are
    /// declared to be polled may be for ever.
    pub fn quiet(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// Whether failures that are known to pass by themselves (timeouts, 429, 503, a reset
    /// connection) count against the limits of failures; `false` by default. They are counted by
    /// [`failing_repeats`](Self::failing_repeats) and [`same_error`](Self::same_error) either way.
    pub fn count_transient(mut self, count: bool) -> Self {
        self.count_transient = count;
        self
    }

    /// Whether a call is refused at twice a signal's number; `true` by default. Otherwise the model
    /// is only told: at the number, at twice of it, at four times, and so on. Failures are counted
    /// then as they are without signals wherever the turn is known.
    pub fn refuse(mut self, refuse: bool) -> Self {
        self.refuse = refuse;
        self
    }

    /// More names, beside those of times, durations and request ids, whose values in an answer are
    /// not compared; none by default.
    pub fn volatile<N: Into<Box<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.volatile.extend(names.into_iter().map(Into::into));
        self
    }

    /// Whether the model is told of a signal now. Where nothing is refused, an answer that comes
    /// again and again says so ever more rarely.
    pub(crate) fn is_due(&self, signal: Signal, step: &Step) -> bool {
        let number = match signal.rule {
            Rule::Repeat if matches!(step.end, End::Failure(_)) => self.failing_repeats,
            Rule::Repeat => step.asked.repeats.unwrap_or(self.repeats),
            Rule::Cycle(_) => self.rounds,
            Rule::SameError => self.same_error,
            Rule::Quiet => return true,
        };
        let doubled = signal.count.is_multiple_of(number.max(1));
        self.refuse || doubled && (signal.count / number.max(1)).is_power_of_two()
    }

    /// What is wrong with the settings.
    pub(crate) fn faults(&self) -> Vec<String> {
        let counts = [
            ("repeats", self.repeats, 2),
            ("failing_repeats", self.failing_repeats, 2),
            ("rounds", self.rounds, 2),
            ("same_error", self.same_error, 2),
        ];
        let mut faults: Vec<_> = counts
            .into_iter()
            .filter(|(_, value, least)| !(*least..=MAX_COUNT).contains(value))
            .map(|(name, value, least)| {
                format!("signals.{name} is {value}, but must be from {least} to {MAX_COUNT}")
            })
            .collect();
        for (name, value) in [("pace", self.pace), ("quiet", self.quiet)] {
            if value.is_zero() {
                faults.push(format!("signals.{name} is 0, but must be longer"));
            }
        }
        if self.volatile.iter().any(|name| name.is_empty()) {
            faults.push("signals.volatile has an empty name".to_owned());
        }
        faults
    }
}
