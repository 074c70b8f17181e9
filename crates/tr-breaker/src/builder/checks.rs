//! Checks a [`Builder`]'s settings. [`Builder::build`] reports all errors together.
use super::Options;
use crate::settings::{COUNTS, Mode, Rules, TIMES, is_rate};
use std::{
    fmt::{Debug, Display},
    ops::RangeInclusive,
    time::Duration,
};

/// How many breakers a layer may keep.
const CAPACITIES: RangeInclusive<usize> = 1..=1_000_000;

impl Options {
    /// The errors of all settings: those out of range, and those that contradict each other.
    pub(crate) fn faults(&self) -> Vec<String> {
        let (settings, mut faults) = (&self.settings, Faults::default());
        faults.rules("", self.rules.consecutive, self.rules.rate, Some(self.rules.cooldown));
        for (effect, change) in self.changes {
            let suffix = format!(" for {effect:?}");
            faults.rules(&suffix, change.consecutive, change.failure_rate, change.cooldown);
        }
        faults.range("window", settings.window, COUNTS);
        faults.range("min_calls", settings.min_calls, 1..=settings.window.clamp(1, *COUNTS.end()));
        if let Some(rolling) = self.rolling {
            faults.range("rolling", rolling, TIMES);
        }
        faults.range("max_probes", settings.max_probes, COUNTS);
        faults.range("successes_to_close", settings.successes_to_close, COUNTS);
        faults.range("capacity", self.capacity, CAPACITIES);
        if let Some(lease) = settings.probe_lease {
            faults.range("probe_lease", lease, TIMES);
        }
        if let Some(share) = self.jitter {
            faults.rate("cooldown_jitter", share);
        }
        if let Some(lasts) = settings.ramp {
            faults.range("ramp", lasts, TIMES);
        }
        if let Some(slow) = settings.slow {
            faults.range("slow_calls, longer than", slow.longer_than, TIMES);
            faults.rate("slow_calls, rate", slow.rate);
        }
        let Rules { consecutive, rate, .. } = self.rules;
        if consecutive.is_none() && rate.is_none() && settings.slow.is_none() {
            faults
                .0
                .push("no threshold is set: set `consecutive_failures` or `failure_rate`".into());
        }
        if settings.force_open && settings.mode == Mode::Disabled {
            faults.0.push(
                "`forced_open` and `Mode::Disabled` contradict each other: set only one".into(),
            );
        }
        faults.0
    }
}

/// The errors found so far, one message each.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    /// Checks the thresholds of all calls, or of those of one effect: `suffix` then names it.
    fn rules(
        &mut self,
        suffix: &str,
        consecutive: Option<u32>,
        rate: Option<f64>,
        cooldown: Option<Duration>,
    ) {
        if let Some(failures) = consecutive {
            self.range(&format!("consecutive_failures{suffix}"), failures, COUNTS);
        }
        if let Some(rate) = rate {
            self.rate(&format!("failure_rate{suffix}"), rate);
        }
        if let Some(cooldown) = cooldown {
            self.range(&format!("cooldown{suffix}"), cooldown, TIMES);
        }
    }

    fn range<T: PartialOrd + Debug + Copy>(
        &mut self,
        what: &str,
        value: T,
        allowed: RangeInclusive<T>,
    ) {
        if !allowed.contains(&value) {
            let (from, to) = (allowed.start(), allowed.end());
            self.add(what, format_args!("{value:?}"), format_args!("{from:?} to {to:?}"));
        }
    }

    fn rate(&mut self, what: &str, rate: f64) {
        if !is_rate(rate) {
            self.add(what, rate, "more than 0, at most 1");
        }
    }

    fn add(&mut self, what: &str, value: impl Display, allowed: impl Display) {
        self.0.push(format!("`{what}` is {value}, must be {allowed}"));
    }
}
