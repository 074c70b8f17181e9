//! The layer.
use crate::{
    config::{Builder, Shared},
    service::LoopGuard,
    turns::Turns,
};
use tower_layer::Layer;
use tr_core::{DefaultPolicy, Sharded};

/// Wraps services in [`LoopGuard`]; all services of one layer share the same turns.
#[derive(Clone, Debug)]
pub struct LoopGuardLayer<A = DefaultPolicy> {
    /// `None`: off.
    shared: Option<Sharded<Shared>>,
    policy: A,
}

impl LoopGuardLayer {
    /// Starts from the defaults: 2 identical failures, 5 in a turn.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for LoopGuardLayer {
    fn default() -> Self {
        Self::builder().build().expect("the defaults are valid")
    }
}

impl<A> LoopGuardLayer<A> {
    pub(crate) const fn with(shared: Option<Sharded<Shared>>, policy: A) -> Self {
        Self { shared, policy }
    }

    /// Sets the policy that reads requests and responses; [`DefaultPolicy`] by default.
    #[must_use]
    pub fn policy<B>(self, policy: B) -> LoopGuardLayer<B> {
        LoopGuardLayer { shared: self.shared, policy }
    }

    /// The handle to begin and end turns; `None` if the guard is off.
    #[must_use]
    pub fn turns(&self) -> Option<&Turns> {
        self.shared.as_ref().map(|shared| &shared.turns)
    }
}

impl<S, A: Clone> Layer<S> for LoopGuardLayer<A> {
    type Service = LoopGuard<S, A>;

    fn layer(&self, inner: S) -> LoopGuard<S, A> {
        LoopGuard::new(inner, self.shared.as_ref().map(Sharded::whole), self.policy.clone())
    }
}
