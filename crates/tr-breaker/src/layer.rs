//! The layer.
use crate::{builder::Builder, handle::Registry, service::Breaker};
use tower_layer::Layer;
use tr_core::DefaultPolicy;

/// Applies a [`Breaker`]; all services that it makes share its breakers, one for each key.
#[derive(Clone, Debug)]
pub struct BreakerLayer<A = DefaultPolicy> {
    policy: A,
    registry: Registry,
}

impl BreakerLayer {
    /// Starts from the defaults, with the same thresholds for every effect.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A layer with the preset [`Builder::close_on_first_success`].
    #[must_use]
    pub fn close_on_first_success() -> Self {
        Builder::close_on_first_success().build_unchecked()
    }
}

impl<A> BreakerLayer<A> {
    pub(crate) const fn new(policy: A, registry: Registry) -> Self {
        Self { policy, registry }
    }

    /// Its breakers, to read and to control.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl Default for BreakerLayer {
    /// A layer with the preset [`Builder::by_effect`].
    fn default() -> Self {
        Builder::by_effect().build_unchecked()
    }
}

impl<S, A: Clone> Layer<S> for BreakerLayer<A> {
    type Service = Breaker<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Breaker::new(inner, self.policy.clone(), self.registry.breakers())
    }
}
