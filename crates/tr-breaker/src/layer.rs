//! The layer.
use crate::{
    builder::Builder, handle::Registry, observers::Observers, registry::Breakers, service::Breaker,
};
use tower_layer::Layer;
use tr_policy::{ConfigError, DefaultPolicy, internal::Sharded};

/// Applies a [`Breaker`]; all services that it makes share its breakers, one for each key.
#[derive(Clone)]
pub struct BreakerLayer<A = DefaultPolicy> {
    policy: A,
    registry: Registry,
}

impl BreakerLayer {
    /// Starts from the defaults, with the same thresholds for every effect.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl<A> Builder<A> {
    /// Checks the settings and makes the layer.
    ///
    /// # Errors
    /// Names every setting that is out of its range, `forced_open` together with
    /// [`Mode::Disabled`](crate::Mode::Disabled), and that no rule opens the breaker where none is
    /// left.
    pub fn build(self) -> Result<BreakerLayer<A>, ConfigError> {
        self.options.check()?;
        Ok(self.build_unchecked())
    }

    /// Makes a layer of settings that are known to be good.
    pub(crate) fn build_unchecked(self) -> BreakerLayer<A> {
        let observers = Observers::default();
        let options = self.options;
        options.observers.iter().for_each(|observer| observers.add(observer.clone()));
        let breakers = Breakers::new(options.settings(), options.capacity, observers);
        let registry = Registry { breakers: Sharded::new(breakers) };
        BreakerLayer { policy: self.policy, registry }
    }
}

impl<A> BreakerLayer<A> {
    /// Its breakers, to read and to control.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }
}

tr_policy::reading! { BreakerLayer, Builder and responses }

tr_policy::debug_parts! { BreakerLayer<A: ::std::fmt::Debug>, |it|
    rules = it.registry.breakers.settings.rules(None),
    breakers = it.registry.all().len(),
    policy = it.policy
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
        Breaker::new(inner, self.policy.clone(), self.registry.breakers.shard())
    }
}
