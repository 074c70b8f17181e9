//! The builder's settings in the form that breakers use.
use super::Builder;
use crate::settings::{Derived, EffectClass, FOREVER, Jitter, Settings, own_seed};

impl<A> Builder<A> {
    pub(crate) fn settings(&self) -> Settings {
        let rules_for = |class| {
            let mut rules = self.rules;
            for (effect, change) in self.preset.into_iter().chain(self.changes) {
                if EffectClass::of(effect) == class {
                    rules.apply(change);
                }
            }
            rules
        };
        Settings {
            rules: EffectClass::ALL.map(rules_for),
            window: self.window,
            min_calls: self.min_calls,
            rolling: self.rolling.unwrap_or(FOREVER),
            slow: self.slow,
            max_probes: self.max_probes,
            successes_to_close: self.successes_to_close,
            probe_lease: self.probe_lease,
            jitter: self
                .jitter
                .map(|share| Jitter { share, seed: self.seed.unwrap_or_else(own_seed) }),
            ramp: self.ramp,
            count_rate_limits: self.count_rate_limits,
            mode: self.mode,
            force_open: self.forced_open,
            derived: Derived::default(),
        }
        .derive()
    }
}
