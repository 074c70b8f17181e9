//! What a layer goes by, and how its services hold on to it.
use crate::{Budget, Policy, chance::Streams};
use std::{fmt, ops::Deref, sync::Arc};
use tr_core::{Effect, Observer, RetryOverride, Striped};

/// All that a layer goes by.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) by_effect: Vec<(Effect, RetryOverride)>,
    pub(crate) budget: Option<Budget>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) streams: Option<Streams>,
    pub(crate) opt_in: bool,
}

impl Settings {
    pub(crate) const fn of(policy: Policy) -> Self {
        Self {
            policy,
            by_effect: Vec::new(),
            budget: None,
            observer: None,
            streams: None,
            opt_in: false,
        }
    }

    /// Whether there is nothing but the policy.
    const fn is_bare(&self) -> bool {
        let Self { policy: _, by_effect, budget, observer, streams, opt_in } = self;
        let shares_nothing = budget.is_none() && observer.is_none() && streams.is_none();
        shares_nothing && by_effect.is_empty() && !*opt_in
    }
}

/// The presets without anything else.
static PRESETS: [Settings; 3] = [
    Settings::of(Policy::tool_reliability()),
    Settings::of(Policy::error_handling()),
    Settings::of(Policy::utee()),
];

/// A hold on settings, which every call takes. The presets' are free; others are counted.
#[derive(Clone)]
pub(crate) struct Terms {
    shared: Option<Striped<Settings>>,
    /// What holds if nothing is shared.
    preset: &'static Settings,
}

impl Terms {
    pub(crate) fn of(settings: Settings) -> Self {
        let preset = |preset: &&Settings| settings.is_bare() && preset.policy == settings.policy;
        match PRESETS.iter().find(preset) {
            Some(preset) => Self { shared: None, preset },
            None => Self { shared: Some(Striped::new(settings)), preset: &PRESETS[0] },
        }
    }

    /// The hold of a service.
    pub(crate) fn whole(&self) -> Self {
        Self { shared: self.shared.as_ref().map(Striped::whole), preset: self.preset }
    }

    /// The hold of one call, by this thread's count.
    #[inline]
    pub(crate) fn hold(&mut self) -> Self {
        Self { shared: self.shared.as_mut().map(Striped::hold), preset: self.preset }
    }

    /// The budget; presets have none.
    #[inline]
    pub(crate) fn budget(&self) -> Option<&Budget> {
        self.shared.as_ref()?.budget.as_ref()
    }
}

impl Deref for Terms {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        self.shared.as_deref().unwrap_or(self.preset)
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_preset_is_not_counted_and_anything_else_is() {
        let is_preset = |settings| Terms::of(settings).shared.is_none();
        for policy in [Policy::tool_reliability(), Policy::error_handling(), Policy::utee()] {
            assert!(is_preset(Settings::of(policy.clone())));
            assert_eq!(Terms::of(Settings::of(policy.clone())).policy, policy);
            assert!(!is_preset(Settings { opt_in: true, ..Settings::of(policy) }));
        }
        let policy = Policy { attempts: 2, ..Policy::utee() };
        assert!(!is_preset(Settings::of(policy.clone())));
        assert_eq!(Terms::of(Settings::of(policy.clone())).policy, policy);
    }
}
