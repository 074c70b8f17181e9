//! The layer and its builder.
use crate::{
    Budget, Policy,
    chance::Streams,
    config::{ConfigError, Faults},
    service::Retry,
    terms::Terms,
};
use std::sync::Arc;
use tower_layer::Layer;
use tr_core::{Effect, Observer, RetryOverride, Standard, Striped};

/// Applies a [`Retry`].
#[derive(Clone, Debug)]
pub struct RetryLayer<A = Standard> {
    terms: Terms,
    shared: Option<Striped<Shared>>,
    answers: A,
}

/// What all services of a layer share, if there is anything: a bare policy shares nothing.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) only_codes: Option<Arc<[Box<str>]>>,
    pub(crate) by_effect: Vec<(Effect, RetryOverride)>,
    pub(crate) budget: Option<Budget>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) streams: Option<Streams>,
    pub(crate) opt_in: bool,
}

/// Configures a [`RetryLayer`].
#[derive(Debug)]
#[must_use]
pub struct Builder<A = Standard> {
    policy: Policy,
    shared: Option<Shared>,
    answers: A,
}

impl RetryLayer {
    /// Starts from [`tool_reliability`](Self::tool_reliability).
    pub const fn builder() -> Builder {
        Builder { policy: Policy::tool_reliability(), shared: None, answers: Standard }
    }

    /// By [`Policy::tool_reliability`].
    #[must_use]
    pub fn tool_reliability() -> Self {
        Self::of(&Policy::tool_reliability())
    }

    /// By [`Policy::error_handling`].
    #[must_use]
    pub fn error_handling() -> Self {
        Self::of(&Policy::error_handling())
    }

    /// By [`Policy::utee`].
    #[must_use]
    pub fn utee() -> Self {
        Self::of(&Policy::utee())
    }

    fn of(policy: &Policy) -> Self {
        Self { terms: Terms::of(policy), shared: None, answers: Standard }
    }
}

impl<A> Builder<A> {
    /// Sets the policy, [`Policy::tool_reliability`] by default.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        match self.policy.only_codes.clone() {
            None if self.shared.is_none() => self,
            only_codes => self.sharing(|shared| shared.only_codes = only_codes),
        }
    }

    /// Changes the policy for tools with this effect; a manifest and a call may change it further.
    pub fn for_effect(self, effect: Effect, changes: RetryOverride) -> Self {
        self.sharing(|shared| {
            shared.by_effect.retain(|(other, _)| *other != effect);
            shared.by_effect.push((effect, changes));
        })
    }

    /// Bounds retries by a budget, which other layers may share. None by default.
    pub fn budget(self, budget: Budget) -> Self {
        self.sharing(|shared| shared.budget = Some(budget))
    }

    /// Retries only calls that bring changes to the policy of their own, and so ask for it.
    pub fn opt_in(self) -> Self {
        self.sharing(|shared| shared.opt_in = true)
    }

    /// Draws delays from streams under `seed`: the same calls in the same order get the same
    /// delays. By default each process has a seed of its own.
    pub fn seed(self, seed: u64) -> Self {
        self.sharing(|shared| shared.streams = Some(Streams::new(seed)))
    }

    /// Tells `observer` of each retry, and of each that was not made.
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        self.sharing(|shared| shared.observer = Some(observer))
    }

    /// Asks `answers` about requests and responses.
    pub fn answers<B>(self, answers: B) -> Builder<B> {
        Builder { policy: self.policy, shared: self.shared, answers }
    }

    /// The layer.
    ///
    /// # Errors
    /// If settings are out of their ranges; the error names each.
    pub fn build(self) -> Result<RetryLayer<A>, ConfigError> {
        let mut faults = Faults::default();
        faults.check_policy("", &self.policy);
        for (effect, changes) in self.shared.iter().flat_map(|shared| &shared.by_effect) {
            let mut changed = self.policy.clone();
            changed.apply(changes);
            faults.check_policy(&format!("{effect:?}: "), &changed);
        }
        faults.into_result()?;
        let (terms, shared) = (Terms::of(&self.policy), self.shared.map(Striped::new));
        Ok(RetryLayer { terms, shared, answers: self.answers })
    }

    fn sharing(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        change(self.shared.get_or_insert_default());
        self
    }
}

impl<S, A: Clone> Layer<S> for RetryLayer<A> {
    type Service = Retry<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let shared = self.shared.as_ref().map(Striped::whole);
        Retry::new(inner, self.terms, shared, self.answers.clone())
    }
}
