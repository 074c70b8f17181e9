//! The layer.
use crate::{builder::Builder, handle::Registry, service::Breaker};
use tower_layer::Layer;
use tr_core::DefaultPolicy;

/// Applies a [`Breaker`]; all services that it makes share its breakers, one for each key.
#[derive(Clone, Debug)]
pub struct BreakerLayer<A = DefaultPolicy> {
    answers: A,
    registry: Registry,
}

impl BreakerLayer {
    /// Starts from the defaults, the same for all effects.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The preset [`Builder::tool_reliability`], as it is.
    #[must_use]
    pub fn tool_reliability() -> Self {
        Builder::tool_reliability().build_unchecked()
    }

    /// The preset [`Builder::error_handling`], as it is.
    #[must_use]
    pub fn error_handling() -> Self {
        Builder::error_handling().build_unchecked()
    }
}

impl<A> BreakerLayer<A> {
    pub(crate) const fn new(answers: A, registry: Registry) -> Self {
        Self { answers, registry }
    }

    /// Its breakers, to ask and to control them.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl Default for BreakerLayer {
    /// The preset `tool_reliability`.
    fn default() -> Self {
        Self::tool_reliability()
    }
}

impl<S, A: Clone> Layer<S> for BreakerLayer<A> {
    type Service = Breaker<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Breaker::new(inner, self.answers.clone(), self.registry.breakers())
    }
}
