//! The settings of a layer, shared by its services.
use crate::{Budget, RetryConfig, rng::RngSource};
use std::sync::Arc;
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

tr_policy::debug_parts! { Settings, |it|
    config = it.config, by_effect = it.by_effect, budget = it.budget, opt_in = it.opt_in, agents = it.agents
}
