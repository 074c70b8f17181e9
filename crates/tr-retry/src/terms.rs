//! What a layer goes by, and how its services hold on to it.
use crate::{Budget, Policy, chance::Streams};
use std::{fmt, ops::Deref, sync::Arc};
use tr_core::{Effect, Observer, RetryOverride, Sharded};

/// All that a layer goes by.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) by_effect: Vec<(Effect, RetryOverride)>,
    pub(crate) budget: Option<Budget>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) streams: Option<Streams>,
    /// Whether calls ask for retries by changes of their own.
    pub(crate) opt_in: bool,
    /// The agents that have asked for retries, where agents do.
    pub(crate) agents: Option<Box<[Box<str>]>>,
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
            agents: None,
        }
    }

    /// Whether there is nothing but the policy.
    const fn is_bare(&self) -> bool {
        let Self { policy: _, by_effect, budget, observer, streams, opt_in, agents } = self;
        let shares_nothing = budget.is_none() && observer.is_none() && streams.is_none();
        shares_nothing && by_effect.is_empty() && !*opt_in && agents.is_none()
    }
}

/// What holds where nothing is shared.
static DEFAULT: Settings = Settings::of(Policy::tool_reliability());

/// What a service goes by. The default is not shared, and so not counted.
#[derive(Clone)]
pub(crate) struct Terms(Option<Sharded<Settings>>);

/// What one call goes by.
pub(crate) struct Held(Option<tr_core::Held<Settings>>);

impl Terms {
    pub(crate) fn of(settings: Settings) -> Self {
        let is_default = settings.is_bare() && settings.policy == DEFAULT.policy;
        Self((!is_default).then(|| Sharded::new(settings)))
    }

    /// The same for another service.
    pub(crate) fn whole(&self) -> Self {
        Self(self.0.as_ref().map(Sharded::whole))
    }

    /// The same for one call.
    #[inline]
    pub(crate) fn acquire(&mut self) -> Held {
        Held(self.0.as_mut().map(Sharded::acquire))
    }
}

impl Held {
    /// The budget; the default has none.
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

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_deref().unwrap_or(&DEFAULT).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_counted_but_what_differs_from_the_default() {
        let default = Policy::tool_reliability;
        let fewer = Policy { attempts: 2, ..default() };
        for (settings, shared) in [
            (Settings::of(default()), false),
            (Settings { opt_in: true, ..Settings::of(default()) }, true),
            (Settings { agents: Some(Box::default()), ..Settings::of(default()) }, true),
            (Settings::of(Policy::utee()), true),
            (Settings::of(fewer), true),
        ] {
            let policy = settings.policy.clone();
            let mut terms = Terms::of(settings);
            assert_eq!((terms.0.is_some(), &terms.acquire().policy), (shared, &policy));
        }
        assert_eq!(size_of::<Held>(), size_of::<usize>());
    }
}
