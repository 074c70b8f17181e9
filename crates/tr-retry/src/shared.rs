//! The settings of a layer, shared by its services.
use crate::{Budget, RetryConfig, rng::RngSource};
use std::{fmt, ops::Deref, sync::Arc};
use tr_policy::{Effect, Observer, RetryOverride, internal::Sharded};

/// All settings of a layer.
pub(crate) struct Settings {
    pub(crate) config: RetryConfig,
    pub(crate) by_effect: Vec<(Effect, RetryOverride)>,
    pub(crate) budget: Option<Budget>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) rngs: Option<RngSource>,
    /// Whether only calls with an override of their own are retried.
    pub(crate) opt_in: bool,
    /// If set, only calls of these agents are retried.
    pub(crate) agents: Option<Box<[Box<str>]>>,
}

impl Settings {
    pub(crate) const fn of(config: RetryConfig) -> Self {
        Self {
            config,
            by_effect: Vec::new(),
            budget: None,
            observer: None,
            rngs: None,
            opt_in: false,
            agents: None,
        }
    }

    /// Whether everything but the configuration has its default.
    const fn is_bare(&self) -> bool {
        let Self { config: _, by_effect, budget, observer, rngs, opt_in, agents } = self;
        let shares_nothing = budget.is_none() && observer.is_none() && rngs.is_none();
        shares_nothing && by_effect.is_empty() && !*opt_in && agents.is_none()
    }
}

/// Used where nothing is shared.
static DEFAULT: Settings = Settings::of(RetryConfig::DEFAULT);

/// The settings of a service. `None` means the defaults: those need no reference count.
#[derive(Clone)]
pub(crate) struct RetryShared(Option<Sharded<Settings>>);

/// The settings for the length of one call.
pub(crate) struct Held(Option<tr_policy::internal::Held<Settings>>);

impl RetryShared {
    pub(crate) fn of(settings: Settings) -> Self {
        let is_default = settings.is_bare() && settings.config == DEFAULT.config;
        Self((!is_default).then(|| Sharded::new(settings)))
    }

    /// A handle for another service.
    pub(crate) fn whole(&self) -> Self {
        Self(self.0.as_ref().map(Sharded::whole))
    }

    /// A handle for one call.
    #[inline]
    pub(crate) fn acquire(&mut self) -> Held {
        Held(self.0.as_mut().map(Sharded::acquire))
    }
}

impl Held {
    /// The budget; `None` in the default settings.
    #[inline]
    pub(crate) fn budget(&self) -> Option<&Budget> {
        self.0.as_ref()?.budget.as_ref()
    }
}

impl Deref for Held {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        self.0.as_deref().unwrap_or(&DEFAULT)
    }
}

impl fmt::Debug for RetryShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_deref().unwrap_or(&DEFAULT).fmt(f)
    }
}

impl fmt::Debug for Settings {
    /// What decides about retries, without the observer and the source of randomness.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Settings");
        shown.field("config", &self.config);
        if !self.by_effect.is_empty() {
            shown.field("by_effect", &self.by_effect);
        }
        if self.opt_in {
            shown.field("opt_in", &self.opt_in);
        }
        if let Some(agents) = &self.agents {
            shown.field("agents", agents);
        }
        shown.field("budget", &self.budget).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_counted_but_what_differs_from_the_default() {
        let default = RetryConfig::default;
        let fewer = RetryConfig { attempts: 2, ..default() };
        for (settings, shared) in [
            (Settings::of(default()), false),
            (Settings { opt_in: true, ..Settings::of(default()) }, true),
            (Settings { agents: Some(Box::default()), ..Settings::of(default()) }, true),
            (Settings::of(RetryConfig::per_request()), true),
            (Settings::of(fewer), true),
        ] {
            let config = settings.config.clone();
            let mut handle = RetryShared::of(settings);
            assert_eq!((handle.0.is_some(), &handle.acquire().config), (shared, &config));
        }
        assert_eq!(size_of::<Held>(), size_of::<usize>());
    }
}
