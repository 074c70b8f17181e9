//! The layer and its builder.
use super::service::ModelGuard;
use crate::session::Sessions;
use std::sync::Arc;
use tower_layer::Layer;
use tr_core::{Observer, Standard};

/// Applies a [`ModelGuard`].
#[derive(Clone, Debug)]
pub struct ModelGuardLayer<A = Standard> {
    pub(super) sessions: Sessions,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) answers: A,
}

/// Configures a [`ModelGuardLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ModelGuardBuilder<A = Standard> {
    layer: ModelGuardLayer<A>,
}

impl ModelGuardLayer {
    /// Guards the calls in these sessions, as their configuration says.
    #[must_use]
    pub fn new(sessions: Sessions) -> Self {
        Self::builder(sessions).build()
    }

    /// Starts from the defaults.
    pub const fn builder(sessions: Sessions) -> ModelGuardBuilder {
        let layer = ModelGuardLayer { sessions, observer: None, answers: Standard };
        ModelGuardBuilder { layer }
    }
}

impl<A> ModelGuardBuilder<A> {
    /// Tells `observer` of blocked calls, repairs and rollbacks.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.layer.observer = Some(observer);
        self
    }

    /// Asks `answers` about requests and responses.
    pub fn answers<B>(self, answers: B) -> ModelGuardBuilder<B> {
        let ModelGuardLayer { sessions, observer, .. } = self.layer;
        ModelGuardBuilder { layer: ModelGuardLayer { sessions, observer, answers } }
    }

    /// The layer. Nothing can be wrong with it: what can is checked where the sessions are made.
    #[must_use]
    pub fn build(self) -> ModelGuardLayer<A> {
        self.layer
    }
}

impl<S, A: Clone> Layer<S> for ModelGuardLayer<A> {
    type Service = ModelGuard<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        ModelGuard::new(inner, self.clone())
    }
}
