//! Checks a [`Builder`]'s settings. [`Builder::build`] reports all errors together.
use super::Options;
use crate::settings::{COUNTS, EFFECTS, Mode, Rules, TIMES, is_rate};
use std::{ops::RangeInclusive, time::Duration};
use tr_policy::{ConfigError, internal::Faults};

/// How many breakers a layer may keep.
const CAPACITIES: RangeInclusive<usize> = 1..=1_000_000;

impl Options {
    /// Names every setting that is out of range, and those that contradict each other.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let (settings, mut faults) = (&self.settings, Faults::default());
        let Rules { consecutive, rate, cooldown } = self.rules;
        check_rules(&mut faults, "", (consecutive, rate, Some(cooldown)));
        for (effect, change) in EFFECTS.into_iter().flatten().zip(self.changes) {
            let rules = (change.consecutive, change.failure_rate, change.cooldown);
            check_rules(&mut faults, &format!(" for {effect:?}"), rules);
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
            check_rate(&mut faults, "cooldown_jitter", share);
        }
        if let Some(lasts) = settings.ramp {
            faults.range("ramp", lasts, TIMES);
        }
        if let Some(slow) = settings.slow {
            faults.range("slow_calls, longer than", slow.longer_than, TIMES);
            check_rate(&mut faults, "slow_calls, rate", slow.rate);
        }
        if consecutive.is_none() && rate.is_none() && settings.slow.is_none() {
            faults.push("no threshold is set: set `consecutive_failures` or `failure_rate`");
        }
        if settings.force_open && settings.mode == Mode::Disabled {
            faults.push("`forced_open` and `Mode::Disabled` contradict each other: set only one");
        }
        faults.into_result("breaker")
    }
}

/// Checks the thresholds of all calls, or of those of one effect: `suffix` then names it.
fn check_rules(
    faults: &mut Faults,
    suffix: &str,
    (consecutive, rate, cooldown): (Option<u32>, Option<f64>, Option<Duration>),
) {
    if let Some(failures) = consecutive {
        faults.range(format_args!("consecutive_failures{suffix}"), failures, COUNTS);
    }
    if let Some(rate) = rate {
        check_rate(faults, &format!("failure_rate{suffix}"), rate);
    }
    if let Some(cooldown) = cooldown {
        faults.range(format_args!("cooldown{suffix}"), cooldown, TIMES);
    }
}

fn check_rate(faults: &mut Faults, setting: &str, rate: f64) {
    faults.check(setting, rate, is_rate(rate), "more than 0, at most 1");
}
