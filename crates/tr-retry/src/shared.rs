//! The settings of a layer, shared by its services.
use crate::{Budget, RetryConfig, rng::RngSource};
use std::{fmt, sync::Arc};
use tr_policy::{Effect, Observer, RetryOverride};

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
